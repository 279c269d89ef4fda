// Scripts of characters; the twin of heedful.text.scripts, whose table comes as data.

/**
 * @typedef {object} ScriptFacts
 * @property {[number, number, string][]} blocks first and last code point and script of each block, in order
 * @property {string[]} unspaced scripts without spaces between words
 */

export class Scripts {
  /** @param {ScriptFacts} facts */
  constructor({ blocks, unspaced }) {
    this.blocks = blocks;
    this.unspaced = new Set(unspaced);
  }

  /** Script of a character; empty where it has none. @param {string} character */
  of(character) {
    const code = character.codePointAt(0) ?? -1;
    let first = 0, last = this.blocks.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (this.blocks[middle][0] <= code) first = middle + 1; else last = middle;
    }
    const block = this.blocks[first - 1];
    return block && code <= block[1] ? block[2] : '';
  }

  /** Whether no spaces part words beside a character. @param {string} character */
  isUnspaced(character) {
    return this.unspaced.has(this.of(character));
  }
}
