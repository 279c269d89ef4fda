// Two rows of words that lines join; they stand as two columns where a row would not fit.
const GAP = 9;

export function arrange(node, rows) {
  const widths = rows.map((words) => words.reduce((sum, word) => sum + word.offsetWidth + GAP, 0));
  node.classList.toggle('upright', Math.max(...widths) > node.clientWidth);
}

export function isUpright(node) {
  return node.classList.contains('upright');
}

// Point of a word, at its edge towards the other row; side 0 is the source.
export function anchor(node, word, side) {
  const box = node.getBoundingClientRect(), place = word.getBoundingClientRect();
  if (isUpright(node)) return { x: (side ? place.left : place.right) - box.left, y: place.top + place.height / 2 - box.top };
  return { x: place.left + place.width / 2 - box.left, y: (side ? place.top : place.bottom) - box.top };
}

// Curve that leaves both words straight.
export function curve(node, from, to) {
  const [x1, y1, x2, y2] = [from.x, from.y, to.x, to.y].map((value) => value.toFixed(1));
  const x = ((from.x + to.x) / 2).toFixed(1), y = ((from.y + to.y) / 2).toFixed(1);
  return isUpright(node) ? `M${x1} ${y1}C${x} ${y1} ${x} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${y} ${x2} ${y} ${x2} ${y2}`;
}

// The drawing waits for the next frame: it may change the height that is watched.
export function follow(node, place) {
  new ResizeObserver(() => requestAnimationFrame(place)).observe(node);
}
