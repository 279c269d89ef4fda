// Ids of the special tokens, those of heedful.text.vocabulary.
export const PAD = 0;
export const UNK = 1;
export const BOS = 2;
export const EOS = 3;
