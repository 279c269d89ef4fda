// Words of a text made of pieces; the twin of heedful.pages.words.
import { EOS } from '../../js/vocabulary.js';

const SPECIAL = ['<pad>', '<unk>', '<bos>', '<eos>'], MARK = '\u2581', END_SIGN = '\u23ce', SPACE_SIGN = '\u2423';
// Apostrophes, and the zero-width joiner and non-joiner.
const INSIDE = "'\u2019\u200c\u200d";
// Scripts that put no space between words, and full-width letters.
const WIDE = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\uff01-\uff60]/u;

export function wordsOf(tokenizer, ids) {
  const pieces = tokenizer.pieces(ids), inner = ids.filter((id) => id !== EOS);
  const plain = pieces.filter((piece, index) => ids[index] !== EOS && !SPECIAL.includes(piece));
  const hasSpaces = plain.some((piece) => piece.includes(MARK) || piece.includes(' '));
  const areWords = tokenizer.wordIndices(inner).every((word, index) => word === index) || (!hasSpaces && plain.some((piece) => [...piece].length > 1));
  const labels = pieces.map((piece, index) => (ids[index] === EOS ? END_SIGN : piece.replaceAll(MARK, ' ')));
  const wordOf = [], texts = [];
  labels.forEach((label, index) => {
    const isJoined = texts.length > 0 && !areWords && (joins(index ? labels[index - 1] : '', label) || !texts[texts.length - 1].trim());
    if (isJoined && label !== END_SIGN) texts[texts.length - 1] += label; else texts.push(label);
    wordOf.push(texts.length - 1);
  });
  const shown = (text) => text.trim() || SPACE_SIGN;
  return { pieces: labels.map(shown), wordOf, words: texts.map(shown) };
}

function joins(before, after) {
  if (!before || !after) return false;
  const last = kindOf([...before].at(-1)), first = kindOf([...after][0]), both = [last, first].sort().join();
  return (last === first && last !== '') || both === 'inside,letter' || both === 'letter,mark';
}

function kindOf(character) {
  if (INSIDE.includes(character)) return 'inside';
  if (/\p{M}/u.test(character)) return 'mark';
  if (/\p{L}/u.test(character) && !WIDE.test(character)) return 'letter';
  if (/\p{Nd}/u.test(character)) return 'digit';
  return /\s/.test(character) ? 'space' : '';
}
