// The map: asks /api/v1/map once a second and draws the answer.
//
// Names in a network are outside data: they are put into the page as text (textContent, fillText), never
// as markup, so nothing in them can act.
'use strict';

const PERIOD = 1000;   // ms between two questions
const ROWS = 12;       // links in the table
const EVENTS = 100;    // events that are kept
const HOP = 90;        // length of a link on the map at zoom 1
const ROUNDS = 60;     // of the layout
const byId = (id) => document.getElementById(id);
const canvas = byId('map');
const pen = canvas.getContext('2d');

// Vertices are nodes ('n' + name) and hosts ('h' + name); each has a place x, y.
let vertices = new Map();
let links = [];            // those of the last answer, with what they do now
let springs = [];          // pairs of vertices that are drawn near each other
let round = ROUNDS;        // of the layout: none is wanted yet
let plan = null;           // how far apart vertices are to be
let answer = null;         // the last map
let chosen = null;         // { vertex } or { from, to }: what details are shown of
let cursor = null;         // the vertex where the keyboard is
let ends = ['', ''];       // from, to
let path = null;           // the answer to ends
let after = null;          // how many events are known
let view = { x: 0, y: 0, k: 1, fit: true };
let counts = { at: null, links: new Map(), packets: null };

// ---- taking an answer in

function take(map) {
  const now = seconds(map.runs);
  const span = counts.at !== null && now > counts.at ? now - counts.at : null;
  const known = new Map();
  for (const link of map.links) {
    const before = counts.links.get(link.number);
    known.set(link.number, link);
    const since = (key) => (span && before ? Math.max(0, link[key] - before[key]) / span : 0);
    link.bits = 8 * since('bytes');
    link.pace = since('packets');
    link.lost = since('dropped');
    link.rate = rateOf(link);
  }
  const pace = (key) => (span && counts.packets ? Math.max(0, map.packets[key] - counts.packets[key]) / span : 0);
  byId('scene').textContent = map.scene.split('/').pop();
  document.title = `${byId('scene').textContent} · nigh lab`;
  byId('size').textContent = `${number(map.nodes_total)} nodes, ${number(map.links_total)} links, runs ${Math.floor(now)} s`;
  byId('rates').textContent = `${short(pace('received'))}packets/s from hosts, ${short(pace('sent'))}packets/s to hosts, ${number(map.packets.in_flight)} in flight`;
  const part = map.nodes.length < map.nodes_total;
  byId('note').textContent = (part ? `${number(map.nodes.length)} of ${number(map.nodes_total)} nodes: around hosts, and where most bytes go` : '')
    + (map.links_skipped ? `; ${number(map.links_skipped)} links between them are skipped` : '');
  byId('note').hidden = !byId('note').textContent;
  counts = { at: now, links: known, packets: map.packets };
  answer = map;
  arrange(map);
}

// Places for what is new, near what it is joined to; what is gone goes.
function arrange(map) {
  const next = new Map();
  // What wires are plugged into is a node and a host in one.
  const systems = new Set(map.hosts.filter((host) => nodeOf(map, host) === host.name).map((host) => host.name));
  const hosts = map.hosts.filter((host) => !systems.has(host.name) && map.nodes.some((node) => node.name === nodeOf(map, host)));
  const wanted = [...map.nodes.map((node) => ['n' + node.name, { node, name: node.name, square: systems.has(node.name) }]),
    ...hosts.map((host) => ['h' + host.name, { host, name: host.name, square: true }])];
  const near = new Map();
  springs = [];
  const seen = new Set();
  const join = (a, b) => {
    const key = a < b ? `${a}\n${b}` : `${b}\n${a}`;
    if (seen.has(key)) return;
    seen.add(key);
    springs.push({ a, b });
    near.set(a, [...(near.get(a) || []), b]);
    near.set(b, [...(near.get(b) || []), a]);
  };
  for (const link of map.links) join('n' + link.from, 'n' + link.to);
  for (const host of hosts) join('h' + host.name, 'n' + nodeOf(map, host));
  let fresh = 0;
  wanted.forEach(([key, data], i) => {
    const old = vertices.get(key);
    const place = old || {};
    if (!old) {
      fresh += 1;
      const friend = (near.get(key) || []).map((other) => next.get(other) || vertices.get(other)).find(Boolean);
      // A spiral without a seed: the same network looks the same each time.
      const angle = i * 2.399963;
      const radius = friend ? 40 : 30 * Math.sqrt(i + 1);
      Object.assign(place, { x: (friend ? friend.x : 0) + radius * Math.cos(angle), y: (friend ? friend.y : 0) + radius * Math.sin(angle) });
    }
    next.set(key, Object.assign(place, data, { key, host: data.host, node: data.node }));
  });
  vertices = next;
  springs = springs.map(({ a, b }) => ({ a: next.get(a), b: next.get(b) })).filter((s) => s.a && s.b);
  if (fresh) {
    measure();
    // A few new ones find a place beside the others, which stay about where they are.
    round = fresh * 2 > next.size ? 0 : Math.min(round, ROUNDS * 0.6);
  }
  // Parallel links lie beside each other.
  const lanes = new Map();
  links = map.links.map((link) => {
    const lane = lanes.get(`${link.from}\n${link.to}`) || 0;
    lanes.set(`${link.from}\n${link.to}`, lane + 1);
    return Object.assign(link, { a: next.get('n' + link.from), b: next.get('n' + link.to), lane });
  });
  if (cursor && !next.has(cursor)) cursor = null;
  names(map);
}

// The name of the node that a host is joined to; a scene may give its address.
function nodeOf(map, host) {
  if (map.nodes.some((node) => node.name === host.node)) return host.node;
  const node = map.nodes.find((node) => node.addresses.includes(host.node));
  return node ? node.name : host.node;
}

function names(map) {
  const all = [...map.hosts, ...map.nodes].map((item) => item.name);
  if (byId('names').dataset.all === all.join('\n')) return;
  byId('names').dataset.all = all.join('\n');
  byId('names').replaceChildren(...all.map((name) => { const option = make('option', ''); option.value = name; return option; }));
}

// ---- the layout: every two vertices as far from each other as they are links apart
//
// Pairs are moved one by one, by less and less from round to round (Zheng, Pawar, Goodman: Graph Drawing
// by Stochastic Gradient Descent, 2018): a few rounds untangle what forces do not.

function measure() {
  const list = [...vertices.values()];
  const place = new Map(list.map((v, i) => [v, i]));
  const next = list.map(() => []);
  for (const { a, b } of springs) {
    next[place.get(a)].push(place.get(b));
    next[place.get(b)].push(place.get(a));
  }
  const size = list.length;
  // What no links join is put aside.
  const far = new Float32Array(size * size).fill(HOP * (2 + Math.sqrt(size)));
  for (let from = 0; from < size; from += 1) {
    const hops = new Array(size).fill(-1);
    hops[from] = 0;
    const queue = [from];
    for (let i = 0; i < queue.length; i += 1) {
      for (const to of next[queue[i]]) {
        if (hops[to] < 0) { hops[to] = hops[queue[i]] + 1; queue.push(to); }
      }
    }
    for (const to of queue) {
      far[from * size + to] = Math.max(20, HOP * hops[to] - (list[from].host ? 45 : 0) - (list[to].host ? 45 : 0));
    }
  }
  const most = far.reduce((a, b) => Math.max(a, b), 0);
  plan = { list, far, most, dice: 1 };
}

function relax() {
  const { list, far, most } = plan;
  const size = list.length;
  const reach = most * most * Math.exp((Math.log((0.05 * HOP * HOP) / (most * most)) * round) / (ROUNDS - 1));
  // The same dice each time: the same network looks the same.
  const order = list.map((_, i) => i);
  for (let i = size - 1; i > 0; i -= 1) {
    plan.dice = (plan.dice * 48271) % 2147483647;
    const j = plan.dice % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  for (let i = 1; i < size; i += 1) {
    for (let j = 0; j < i; j += 1) {
      const a = list[order[i]], b = list[order[j]];
      const ideal = far[order[i] * size + order[j]];
      const x = a.x - b.x, y = a.y - b.y;
      const now = Math.sqrt(x * x + y * y) || 1;
      const move = (Math.min(1, reach / (ideal * ideal)) * (now - ideal)) / 2 / now;
      a.x -= x * move; a.y -= y * move;
      b.x += x * move; b.y += y * move;
    }
  }
  round += 1;
}

function frame() {
  if (round < ROUNDS) {
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    const until = performance.now() + (still ? 500 : 5);
    do relax(); while (round < ROUNDS && performance.now() < until);
    draw();
    soon();
  } else {
    draw();
  }
}
let drawing = false;
function soon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; frame(); });
}

// ---- drawing

const isFew = () => vertices.size <= 80;

function fit() {
  const all = [...vertices.values()];
  if (!all.length) return;
  const [left, right] = [Math.min(...all.map((v) => v.x)), Math.max(...all.map((v) => v.x))];
  const [top, bottom] = [Math.min(...all.map((v) => v.y)), Math.max(...all.map((v) => v.y))];
  const { clientWidth: width, clientHeight: height } = canvas;
  // Names stand to the right, the legend below.
  view.k = Math.max(0.02, Math.min((width - 190) / Math.max(right - left, 1), (height - 140) / Math.max(bottom - top, 1), 2.5));
  view.x = (left + right) / 2 + 45 / view.k;
  view.y = (top + bottom) / 2 + 15 / view.k;
}
const toScreen = (p) => ({ x: (p.x - view.x) * view.k + canvas.clientWidth / 2, y: (p.y - view.y) * view.k + canvas.clientHeight / 2 });

function look(link, colour) {
  const load = link.rate ? link.bits / link.rate : null;
  if (!isUp(link) || !link.a.node.up || !link.b.node.up) return { colour: colour.drops, width: 1.5, down: true };
  if (link.lost > 0) return { colour: colour.drops, width: 4, busy: true };
  if (link.bits <= 0) return { colour: colour.wire, width: isFew() ? 1.25 : 0.7 };
  if (load === null) return { colour: colour.free, width: Math.min(4, 1.5 + Math.log10(1 + link.bits / 1e5)), busy: true };
  return { colour: load < 0.5 ? colour.some : colour.much, width: 2 + 2 * Math.min(1, load), busy: true };
}

// Where a link is drawn: right of the middle, each direction on its side.
function lineOf(link) {
  const a = toScreen(link.a), b = toScreen(link.b);
  const far = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const side = (isFew() ? 2.5 : 1.5) + 6 * link.lane;
  const ox = (-(b.y - a.y) / far) * side, oy = ((b.x - a.x) / far) * side;
  return { x1: a.x + ox, y1: a.y + oy, x2: b.x + ox, y2: b.y + oy };
}

const onPath = new Set();
function markPath() {
  onPath.clear();
  const hops = (path && path.hops) || [];
  hops.forEach((hop, i) => { if (i) onPath.add(`${hops[i - 1].node}\n${hop.node}`); });
}

function draw() {
  if (view.fit) fit();
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const style = getComputedStyle(document.documentElement);
  const colour = Object.fromEntries(['page', 'card', 'text', 'dim', 'wire', 'some', 'much', 'drops', 'free', 'halo', 'host']
    .map((name) => [name, style.getPropertyValue('--' + name).trim()]));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.lineCap = 'round';
  const stroke = ({ x1, y1, x2, y2 }, color, thick, dashes) => {
    pen.strokeStyle = color; pen.lineWidth = thick; pen.setLineDash(dashes || []);
    pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x2, y2); pen.stroke();
  };
  const isChosen = (link) => chosen && chosen.from !== undefined && [link.from, link.to].sort().join('\n') === [chosen.from, chosen.to].sort().join('\n');
  for (const link of links) {
    if (onPath.has(`${link.from}\n${link.to}`) || isChosen(link)) stroke(lineOf(link), colour.halo, 12);
  }
  for (const { a, b } of springs) {
    const [p, q] = [toScreen(a), toScreen(b)];
    if (a.host || b.host) stroke({ x1: p.x, y1: p.y, x2: q.x, y2: q.y }, colour.host, 1, [2, 4]);
  }
  // What matters is drawn last, on top.
  const order = (link) => (link.lost > 0 ? 3 : link.bits > 0 ? 2 : isUp(link) ? 0 : 1);
  for (const link of [...links].sort((a, b) => order(a) - order(b))) {
    const at = lineOf(link);
    const { colour: color, width: thick, busy, down } = look(link, colour);
    stroke(at, color, thick, down ? [4, 5] : null);
    const far = Math.hypot(at.x2 - at.x1, at.y2 - at.y1);
    if (busy && far > 40) {
      // An arrow at two thirds of the way.
      const [ux, uy] = [(at.x2 - at.x1) / far, (at.y2 - at.y1) / far];
      const [x, y] = [at.x1 + (at.x2 - at.x1) * 0.66, at.y1 + (at.y2 - at.y1) * 0.66];
      pen.fillStyle = color;
      pen.beginPath(); pen.moveTo(x + ux * 7, y + uy * 7); pen.lineTo(x - uy * 4, y + ux * 4); pen.lineTo(x + uy * 4, y - ux * 4); pen.fill();
    }
  }
  pen.setLineDash([]);
  const size = isFew() ? 7 : 4;
  const marks = new Map([[ends[0], 'from'], [ends[1], 'to']].filter(([name]) => name));
  for (const v of vertices.values()) {
    const { x, y } = toScreen(v);
    const focus = chosen && chosen.vertex === v.key;
    pen.beginPath();
    if (v.square) pen.rect(x - 6, y - 6, 12, 12); else pen.arc(x, y, size, 0, 7);
    pen.fillStyle = v.square ? colour.host : v.node.up ? colour.card : colour.page;
    pen.fill();
    pen.lineWidth = focus || marks.has(v.name) ? 3 : 1.5;
    pen.strokeStyle = v.node && !v.node.up ? colour.drops : focus || marks.has(v.name) ? colour.free : v.square ? colour.host : colour.dim;
    pen.stroke();
    if (v.node && !v.node.up) {
      stroke({ x1: x - 4, y1: y - 4, x2: x + 4, y2: y + 4 }, colour.drops, 2);
      stroke({ x1: x - 4, y1: y + 4, x2: x + 4, y2: y - 4 }, colour.drops, 2);
    }
    if (cursor === v.key && document.activeElement === canvas) {
      pen.beginPath(); pen.arc(x, y, size + 7, 0, 7); pen.lineWidth = 2; pen.strokeStyle = colour.free; pen.stroke();
    }
  }
  label(colour, marks);
}

// Names, those that matter first; one that would cover another is left out.
function label(colour, marks) {
  const onWay = new Set(((path && path.hops) || []).map((hop) => hop.node));
  const weight = (v) => (chosen && chosen.vertex === v.key) || cursor === v.key || marks.has(v.name) ? 1e9
    : v.square ? 1e8 : !v.node.up ? 1e7 : onWay.has(v.name) ? 1e6 : v.node.links;
  // Of many names none covers a node, but for those that matter.
  const nodes = isFew() ? [] : [...vertices.values()].map(toScreen).map(({ x, y }) => ({ l: x - 4, r: x + 4, t: y - 4, b: y + 4 }));
  const taken = [];
  const covers = (box) => (t) => t.l < box.r && box.l < t.r && t.t < box.b && box.t < t.b;
  pen.font = '12px system-ui, sans-serif';
  pen.textBaseline = 'middle';
  pen.lineJoin = 'round';
  for (const v of [...vertices.values()].sort((a, b) => weight(b) - weight(a))) {
    const { x, y } = toScreen(v);
    const text = v.name.length > 24 ? v.name.slice(0, 23) + '…' : v.name;
    const wide = pen.measureText(text).width;
    const box = { l: x + 9, r: x + 13 + wide, t: y - 8, b: y + 8 };
    if (taken.some(covers(box)) || (weight(v) < 1e6 && nodes.some(covers(box)))) continue;
    taken.push(box);
    pen.lineWidth = 4; pen.strokeStyle = colour.page; pen.strokeText(text, x + 11, y);
    pen.fillStyle = v.square ? colour.host : colour.text; pen.fillText(text, x + 11, y);
  }
}

// ---- choosing

function vertexAt(x, y) {
  let best = null, least = 14;
  for (const v of vertices.values()) {
    const at = toScreen(v);
    const far = Math.hypot(at.x - x, at.y - y);
    if (far < least) [best, least] = [v, far];
  }
  return best;
}
function linkAt(x, y) {
  let best = null, least = 8;
  for (const link of links) {
    const { x1, y1, x2, y2 } = lineOf(link);
    const [dx, dy] = [x2 - x1, y2 - y1];
    const share = Math.max(0, Math.min(1, ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1)));
    const far = Math.hypot(x1 + share * dx - x, y1 + share * dy - y);
    if (far < least) [best, least] = [link, far];
  }
  return best;
}

// The first place is where a path begins, the second where it ends, a third begins anew.
function choose(v) {
  chosen = { vertex: v.key };
  if (ends[0] && !ends[1] && ends[0] !== v.name) walk(ends[0], v.name); else walk(v.name, '');
  details();
}
function chooseLink(link) {
  chosen = { from: link.from, to: link.to };
  details();
  soon();
}
function walk(from, to) {
  ends = [from, to];
  byId('from').value = from;
  byId('to').value = to;
  path = null;
  markPath();
  showPath();
  soon();
  if (from && to) refresh();
}
function clear() {
  chosen = null;
  walk('', '');
  details();
}

// ---- details beside the map

const gauge = (link) => (link.rate ? ` (${Math.round((100 * link.bits) / link.rate)} %)` : '');

function details() {
  byId('details').hidden = !chosen;
  if (!chosen || !answer) return;
  const v = chosen.vertex && vertices.get(chosen.vertex);
  if (chosen.vertex) {
    byId('what').textContent = `${chosen.vertex[0] === 'h' ? 'Host' : 'Node'} ${chosen.vertex.slice(1)}`;
    if (!v) return show(byId('about'), line('It is not on the map any more.'));
    if (v.host) {
      const space = v.host.namespace ? [line(make('span', 'dim', 'namespace '), v.host.namespace)] : [];
      return show(byId('about'), line(make('span', 'dim', 'at '), v.host.node), line(make('span', 'dim', 'addresses '), v.host.addresses.join(', ')), ...space);
    }
    const own = links.filter((link) => link.from === v.name || link.to === v.name);
    const body = own.sort((a, b) => b.bits - a.bits || b.bytes - a.bytes).slice(0, ROWS)
      .map((link) => [button(`${link.from} > ${link.to}`, () => chooseLink(link)), `${short(link.bits)}bit/s`, number(link.dropped)]);
    const table = make('table', '', ...rows(['link', 'now', 'dropped'], body));
    return show(byId('about'), line(v.node.up ? 'up' : make('b', 'bad', 'down'), `, ${number(v.node.links)} ${v.node.links === 1 ? 'link' : 'links'}`),
      line(make('span', 'dim', 'addresses '), v.node.addresses.join(', ') || 'none'), table);
  }
  byId('what').textContent = `Link ${chosen.from} – ${chosen.to}`;
  const both = links.filter((link) => [chosen.from, chosen.to].includes(link.from) && [chosen.from, chosen.to].includes(link.to));
  if (!both.length) return show(byId('about'), line('It is not on the map any more.'));
  show(byId('about'), ...both.flatMap((link) => [
    line(make('b', '', `${link.from} > ${link.to}`), link.changed ? ' changed: ' : ' ', linkText(link)),
    line(`${short(link.bits)}bit/s${gauge(link)}, ${short(link.pace)}packets/s, `, make('span', link.lost > 0 ? 'bad' : '', `${short(link.lost)}drops/s`)),
    line(make('span', 'dim', `so far ${number(link.packets)} packets, ${number(link.bytes)} bytes, ${number(link.dropped)} dropped`))]));
}

function showPath() {
  const [from, to] = ends;
  const section = byId('path');
  if (!from) return show(section, make('p', 'dim', 'Select two nodes or hosts on the map, or enter names or addresses.'));
  if (!to) return show(section, make('p', 'dim', `From ${from}: now select the destination.`));
  if (!path) return show(section, make('p', 'dim', 'loading ...'));
  if (path.error) return show(section, make('p', 'bad', path.error));
  const facts = [`delay ${path.delay} one way`, path.rate ? `at most ${short(path.rate)}bit/s by ${path.bottleneck}` : 'no rate is set',
    ...(path.mtu ? [`MTU ${path.mtu}`] : []), ...(path.loss > 0 ? [`${(100 * path.loss).toFixed(2)} % lost by chance`] : [])];
  const body = path.hops.map((hop) => [button(hop.node, () => { const v = vertices.get('n' + hop.node); if (v) { chosen = { vertex: v.key }; details(); soon(); } }), hop.address || '', hop.delay]);
  if (path.host) body.push([path.host, path.address, path.delay]);
  show(section, line(facts.join(', ')), ...(path.stopped ? [line(make('b', 'bad', `Packets do not arrive: ${path.stopped}`))] : []),
    ...(path.ecmp ? [make('p', 'dim', 'Other flows may take another path.')] : []), make('table', '', ...rows(['hop', 'address', 'delay'], body)));
}

function table() {
  const by = byId('sort').value;
  const best = [...links].sort((a, b) => b[by] - a[by] || b.bytes - a.bytes).filter((link) => link.packets > 0).slice(0, ROWS);
  const far = by === 'bytes' || by === 'dropped';
  const body = best.map((link) => [button(`${link.from} > ${link.to}`, () => chooseLink(link)),
    far ? `${short(link.bytes)}B` : `${short(link.bits)}bit/s${gauge(link)}`, far ? number(link.dropped) : `${short(link.lost)}/s`]);
  show(byId('links'), ...(body.length ? rows(['link', far ? 'bytes' : 'load', 'drops'], body) : [make('caption', 'dim', 'no packets yet')]));
}

const eventText = {
  link: (event) => `link ${event.link} set ${settingsText(event.set)}`,
  node: (event) => `node ${event.node} is ${event.up ? 'up' : 'down'}`,
  prohibit: (event) => `node ${event.node} ${event.prohibited ? 'prohibits' : 'no longer prohibits'} ${event.prefix}`,
  routing: (event) => (event.usable ? `routing uses ${event.link} again` : `routing avoids ${event.link}`),
  drops: (event) => `dropped ${number(event.packets)} packets: ${event.reason}`,
  missed: (event) => `${number(event.events)} events were skipped`,
};
function showEvents(events) {
  const list = byId('events');
  if (events.length) byId('none')?.remove();
  for (const event of events) {
    const text = eventText[event.event] ? eventText[event.event](event) : event.event;
    list.prepend(make('li', '', make('span', 'dim', `${seconds(event.at).toFixed(1)} s `), text));
  }
  while (list.children.length > EVENTS) list.lastElementChild.remove();
}

// ---- asking

async function ask(what, pairs) {
  const query = new URLSearchParams(pairs);
  const response = await fetch(`api/v1/${what}?${query}`, { cache: 'no-store', signal: AbortSignal.timeout(10000) });
  const value = await response.json();
  if (!response.ok && !(what === 'path' && response.status < 500)) throw new Error(value.error || response.status);
  return value;
}

let busy = false, again = null;
async function refresh() {
  if (busy) return;
  busy = true;
  clearTimeout(again);
  const asked = ends.join('\n');
  try {
    // A path that was refused is not requested again.
    if (ends[0] && ends[1] && !(path && path.error)) {
      const found = await ask('path', [['from', ends[0]], ['to', ends[1]]]);
      if (asked === ends.join('\n')) { path = found; markPath(); showPath(); }
    }
    const hops = ((path && path.hops) || []).slice(0, 100).map((hop) => ['with', hop.node]);
    take(await ask('map', hops));
    const recent = await ask('events', after === null ? [] : [['after', after]]);
    showEvents(recent.events);
    after = recent.after;
    table();
    details();
    byId('lost').textContent = '';
    soon();
  } catch (error) {
    byId('lost').textContent = `The lab does not answer (${error.message}); the data shown is old.`;
  }
  busy = false;
  again = setTimeout(refresh, document.hidden ? 10 * PERIOD : asked === ends.join('\n') ? PERIOD : 0);
}

// ---- mouse, touch and keys

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const k = Math.max(0.02, Math.min(8, view.k * factor));
  const [dx, dy] = [x - canvas.clientWidth / 2, y - canvas.clientHeight / 2];
  view = { x: view.x + dx / view.k - dx / k, y: view.y + dy / view.k - dy / k, k, fit: false };
  soon();
}
let drag = null;
canvas.addEventListener('pointerdown', (event) => {
  drag = { x: event.offsetX, y: event.offsetY, from: { ...view }, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', (event) => {
  const [x, y] = [event.offsetX, event.offsetY];
  if (!drag) {
    canvas.classList.toggle('over', Boolean(vertexAt(x, y) || linkAt(x, y)));
    return;
  }
  if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
  if (drag.moved) {
    view = { ...drag.from, x: drag.from.x - (x - drag.x) / view.k, y: drag.from.y - (y - drag.y) / view.k, fit: false };
    soon();
  }
});
canvas.addEventListener('pointerup', (event) => {
  const still = drag && !drag.moved;
  drag = null;
  if (!still) return;
  const v = vertexAt(event.offsetX, event.offsetY);
  if (v) { cursor = v.key; choose(v); return; }
  const link = linkAt(event.offsetX, event.offsetY);
  if (link) chooseLink(link);
});
canvas.addEventListener('pointercancel', () => { drag = null; });
canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 500), event.offsetX, event.offsetY);
}, { passive: false });

// The next vertex in a direction: near, and not far off it.
function step(dx, dy) {
  const here = vertices.get(cursor);
  if (!here) return vertices.values().next().value;
  let best = here, least = Infinity;
  for (const v of vertices.values()) {
    const along = (v.x - here.x) * dx + (v.y - here.y) * dy;
    const off = Math.abs((v.x - here.x) * dy) + Math.abs((v.y - here.y) * dx);
    if (v !== here && along > off * 0.5 && along + 2 * off < least) [best, least] = [v, along + 2 * off];
  }
  return best;
}
function announce(text) { byId('announcement').textContent = text; }
canvas.addEventListener('keydown', (event) => {
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (ways[event.key]) {
    const v = step(...ways[event.key]);
    if (v) { cursor = v.key; announce(`${v.host ? 'host' : 'node'} ${v.name}${v.node && !v.node.up ? ', down' : ''}`); }
  } else if (event.key === 'Enter' || event.key === ' ') {
    if (vertices.has(cursor)) choose(vertices.get(cursor));
  } else if (event.key === 'Escape') clear();
  else if (event.key === '+' || event.key === '=') zoom(1.3);
  else if (event.key === '-') zoom(1 / 1.3);
  else if (event.key === '0') view.fit = true;
  else return;
  event.preventDefault();
  soon();
});
canvas.addEventListener('focus', soon);
canvas.addEventListener('blur', soon);
byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  walk(byId('from').value.trim(), byId('to').value.trim());
});
byId('clear').addEventListener('click', clear);
byId('sort').addEventListener('change', table);
new ResizeObserver(soon).observe(canvas);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', soon);
refresh();
