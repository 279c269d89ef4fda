// Captioning model: pictures, engine and search behind one call; the twin of heedful.predictors.captioner.
import { ModelError } from './errors.js';
import { ended, pauses } from './model.js';
import { searchOf } from './options.js';
import { decode, faultOfPicture, fitted } from './pictures.js';
import { search } from './search.js';
import { Tokenizer } from './tokenizers.js';

/**
 * @typedef {object} CaptionFacts Description of a model, the file model.json of its archive.
 * @property {string} name
 * @property {number} max_tokens
 * @property {import('./search.js').SearchConfig} search
 * @property {import('./tokenizers.js').TokenizerFacts} tokenizer
 * @property {import('./pictures.js').PictureFacts} images
 *
 * @typedef {object} Caption
 * @property {string} text
 * @property {number} logProb
 * @property {number} score
 * @property {{ text: string, logProb: number, score: number }[]} alternatives all captions, best first, the best one included
 * @property {string[]} pieces tokens of the caption, EOS included; empty without attention
 * @property {number[][] | null} attention [piece][region], regions row by row
 * @property {[number, number]} grid rows and columns of regions
 */

/** Length of a picture for rules that compare outputs with their sources, as in Python. */
const UNLIMITED = 2 ** 40;

export class CaptionModel {
  /** @param {CaptionFacts} facts @param {import('./engine.js').Engine} engine */
  constructor(facts, engine) {
    this.facts = facts;
    this.engine = engine;
    this.tokenizer = new Tokenizer(facts.tokenizer);
    this.pause = pauses();
  }

  get name() {
    return this.facts.name;
  }

  /**
   * Describe pictures.
   * @param {readonly (Blob | import('./pictures.js').Pixels)[]} pictures files, in a browser or a worker; or pixels
   * @param {import('./options.js').SearchOptions} [options]
   * @returns {Promise<Caption[]>} one for each picture, in order
   */
  async caption(pictures, options = {}) {
    if (!Array.isArray(pictures)) throw new ModelError('usage', 'caption: expected a list of pictures; put a single one into a list');
    const { images, search: own, max_tokens: maxLength } = this.facts, config = searchOf(own, options, 'caption'), { attention = false, signal } = options;
    for (const [index, picture] of pictures.entries()) {
      const fault = faultOfPicture(picture);
      if (fault) throw new ModelError('usage', `caption: pictures[${index}]: ${fault}`);
    }
    if (options.search?.beta && !this.engine.hasWeights) throw new ModelError('usage', 'caption: search.beta needs attention, and this model gives none');
    const captions = [];
    for (const [index, picture] of pictures.entries()) {
      signal?.throwIfAborted();
      const pixels = fitted(picture instanceof Blob ? await decoded(picture, pictures.length > 1 ? `pictures[${index}]: ` : '') : picture, images);
      /** @type {[number, number]} */
      const grid = [images.height / (images.region_height || images.region_size), images.width / images.region_size];
      const source = { pixels, dims: [1, images.channels, images.height, images.width], positions: grid[0] * grid[1], length: UNLIMITED };
      const hypotheses = await search(this.engine, source, config, { maxLength, needWeights: attention, signal, pause: this.pause });
      const alternatives = hypotheses.map(({ ids, logProb, score }) => ({ text: this.tokenizer.decode(ids), logProb, score })), [first] = hypotheses;
      captions.push({
        ...alternatives[0], alternatives, grid, pieces: attention ? this.tokenizer.pieces(ended(first)) : [],
        attention: first.weights ? first.weights.map((row) => Array.from(row)) : null,
      });
    }
    return captions;
  }

  /** Free the memory of the runtime. */
  release() {
    return this.engine.release();
  }
}

/** Pixels of a file. @param {Blob} picture @param {string} place which one it is, for the error */
async function decoded(picture, place) {
  try {
    return await decode(picture);
  } catch (error) {
    throw error instanceof ModelError ? new ModelError(error.code, place + error.message, error) : error;
  }
}
