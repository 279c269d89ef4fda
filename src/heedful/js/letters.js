// Letters that a model of characters knows, and the forms in which it reads words with others; the twin of heedful.text.known_letters.

const QUOTES = /[\u2018\u2019]/g, HYPHENS = /[\u2010\u2011]/g;
// White space, as Python has it.
const WORD = /[^\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

const ACCENTS = /[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0\ufe20-\ufe2f]/g;

/** @param {string} word */
const plain = (word) => each(word, (character) => character.normalize('NFKC').replace(QUOTES, "'").replace(HYPHENS, '-'));
/** @param {string} word */
const bare = (word) => each(plain(word), (character) => character.normalize('NFD').replace(ACCENTS, ''));

/** @param {string} text @param {(character: string) => string} change */
function each(text, change) {
  return Array.from(text, change).join('');
}

/** @param {string} word */
function title(word) {
  const [first = '', ...others] = word;
  return first.toUpperCase() + others.join('').toLowerCase();
}

/**
 * Write words with unknown letters in forms whose letters are known; all other words stay.
 * @param {string} text in its normal form
 * @param {{ has(letter: string): boolean }} letters that the model knows
 * @returns {string}
 */
export function foldLetters(text, letters) {
  const unknown = (/** @type {string} */ word) => (word ? Array.from(word).filter((letter) => !letters.has(letter)).length : 1);
  return text.replace(WORD, (word) => {
    let best = word, fewest = unknown(word);
    for (const base of [(/** @type {string} */ same) => same, plain, bare]) {
      const written = base(word);
      for (const form of [written, written.toLowerCase(), written.toUpperCase(), title(written)]) {
        if (!fewest) return best;
        const number = unknown(form);
        if (number < fewest) [best, fewest] = [form, number];
      }
    }
    return best;
  });
}
