// A force-directed layout: nodes repel each other, edges pull them together, and all nodes are pulled to the centre.
// The layout is deterministic, and ends after a bounded number of steps.

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const STEPS = 260;
const APART = 4200;
const SPRING = 0.06;
const EDGE = 125;
const MIDDLE = 0.01;
const ROOM = 26;
const FASTEST = 40;

// layout(nodes, edges, ratio): nodes {id, r} get x and y unless they have them; edges {from, to} refer to nodes.
// → {step() → true while nodes move, warm()}
export function layout(nodes, edges, ratio) {
  const degrees = new Map();
  for (const { from, to } of edges) for (const end of [from, to]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
  // Nodes with many edges start in the middle.
  const order = [...nodes].sort((a, b) => (degrees.get(b) ?? 0) - (degrees.get(a) ?? 0));
  order.forEach((node, at) => {
    node.vx = 0;
    node.vy = 0;
    if (node.x !== undefined) return;
    // A sunflower pattern: no two nodes have the same position.
    const distance = 34 * Math.sqrt(at + 0.5);
    node.x = distance * Math.cos(at * GOLDEN) * ratio;
    node.y = distance * Math.sin(at * GOLDEN);
  });
  let left = STEPS;

  function step() {
    if (left <= 0) return false;
    left -= 1;
    const heat = left / STEPS;
    for (let i = 0; i < nodes.length; i += 1) for (let j = i + 1; j < nodes.length; j += 1) apart(nodes[i], nodes[j], i + j);
    for (const { from, to } of edges) together(from, to);
    for (const node of nodes) {
      // The layout gets the aspect ratio of the picture.
      node.vx -= (node.x * MIDDLE) / ratio;
      node.vy -= node.y * MIDDLE * ratio;
      const speed = Math.hypot(node.vx, node.vy);
      const most = FASTEST * heat;
      const share = speed > most ? most / speed : 1;
      if (!node.held) {
        node.x += node.vx * share;
        node.y += node.vy * share;
      }
      node.vx *= 0.6;
      node.vy *= 0.6;
    }
    return left > 0;
  }

  function apart(a, b, salt) {
    let [dx, dy] = [a.x - b.x, a.y - b.y];
    if (dx === 0 && dy === 0) [dx, dy] = [Math.cos(salt), Math.sin(salt)];
    const distance = Math.hypot(dx, dy);
    const room = a.r + b.r + ROOM;
    const force = APART / (distance * distance) + (distance < room ? (room - distance) * 0.25 : 0);
    const [fx, fy] = [(dx / distance) * force, (dy / distance) * force];
    a.vx += fx;
    a.vy += fy;
    b.vx -= fx;
    b.vy -= fy;
  }

  function together(from, to) {
    if (from === to) return;
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const distance = Math.hypot(dx, dy) || 1;
    // Each edge pulls less if its nodes have many.
    const weight = SPRING / Math.sqrt(Math.min(degrees.get(from), degrees.get(to)));
    const force = (distance - EDGE - from.r - to.r) * weight;
    from.vx += (dx / distance) * force;
    from.vy += (dy / distance) * force;
    to.vx -= (dx / distance) * force;
    to.vy -= (dy / distance) * force;
  }

  return { step, warm: () => { left = Math.max(left, STEPS / 4); } };
}
