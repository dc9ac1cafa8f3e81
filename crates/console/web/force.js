// Places the nodes of a graph: nodes keep apart, edges hold them together, all are drawn to the middle. The
// same graph is always placed the same way, and it comes to rest after a bounded number of steps.

const GOLDEN = Math.PI * (3 - Math.sqrt(5));
const STEPS = 260;
const APART = 4200;
const SPRING = 0.06;
const EDGE = 125;
const MIDDLE = 0.01;
const ROOM = 26;
const FASTEST = 40;

// layout(nodes, edges, ratio): nodes {id, r}, which get x and y unless they have them; edges {from, to} are
// nodes. → {step() → whether it still moves, warm()}
export function layout(nodes, edges, ratio) {
  const degrees = new Map();
  for (const { from, to } of edges) for (const end of [from, to]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
  // Who is related to many begins in the middle.
  const order = [...nodes].sort((a, b) => (degrees.get(b) ?? 0) - (degrees.get(a) ?? 0));
  order.forEach((node, at) => {
    node.vx = 0;
    node.vy = 0;
    if (node.x !== undefined) return;
    // The sunflower's seeds: no two at one place.
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
      // Wider than high, or the other way, as the place is.
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
    // Who has many edges is not torn about by each.
    const weight = SPRING / Math.sqrt(Math.min(degrees.get(from), degrees.get(to)));
    const force = (distance - EDGE - from.r - to.r) * weight;
    from.vx += (dx / distance) * force;
    from.vy += (dy / distance) * force;
    to.vx -= (dx / distance) * force;
    to.vy -= (dy / distance) * force;
  }

  return { step, warm: () => { left = Math.max(left, STEPS / 4); } };
}
