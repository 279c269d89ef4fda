// Start of the page that a server sends, or that shows the sentence inside its file.
import { start } from './page.js';

start();
