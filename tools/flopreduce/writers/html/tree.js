// Ranges and kernels as a tree, from rows [depth, name, phase, FLOP, time in ns, launches] in
// preorder; kernels have a phase, "" for several, and a range has that of all its kernels.
function readTree(rows) {
  const root = { name: "all launches", depth: 0, leaf: false, children: [], parent: null,
                 weight: [0, 0, 0], phase: null };
  const open = [root];
  for (const [depth, nodeName, phase, ...weight] of rows) {
    open.length = Math.min(open.length, depth);
    const parent = open[open.length - 1];
    const node = { name: nodeName, depth: open.length, leaf: phase !== null, children: [], parent,
                   weight, phase };
    parent.children.push(node);
    open.push(node);
    if (phase === null) continue;
    for (let at = parent; at; at = at.parent) at.phase = (at.phase ?? phase) === phase ? phase : "";
  }
  for (const child of root.children)
    child.weight.forEach((value, i) => (root.weight[i] += value));
  return root;
}

function* nodesBelow(root) {
  const work = [root];
  while (work.length > 0) {
    const node = work.pop();
    yield node;
    for (const child of node.children) work.push(child);
  }
}

// Of each kernel, the phase that has most of its time.
function mainPhases(root) {
  const times = new Map();
  for (const node of nodesBelow(root)) {
    if (!node.leaf) continue;
    if (!times.has(node.name)) times.set(node.name, new Map());
    const of = times.get(node.name);
    of.set(node.phase, (of.get(node.phase) ?? 0) + (node.weight[1] || node.weight[2]));
  }
  const main = new Map();
  for (const [kernel, of] of times) main.set(kernel, [...of].sort((a, b) => b[1] - a[1])[0][0]);
  return main;
}
