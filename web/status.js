// The status page: asks /api/v1/status once a second and shows the answer.
//
// Everything that comes from the node is put into the page as text (textContent, attributes of SVG
// shapes), never as markup, so nothing in it can act.
'use strict';

const PERIOD = 1000;       // ms between two questions
const HISTORY = 120;       // samples of the rate that are drawn
const SVG = 'http://www.w3.org/2000/svg'; // a name, nothing is fetched from there

const history = [];
let last = null;

const byId = (id) => document.getElementById(id);
const number = (value) => Number(value || 0).toLocaleString('en');
const sum = (object) => Object.values(object || {}).reduce((a, b) => a + Number(b), 0);
const drops = (count) => sum(count.dropped);

// An element with a class and children; children are elements or text.
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

function shape(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

function picture(width, height, label, stretch) {
  const box = { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, height };
  if (stretch) box.preserveAspectRatio = 'none';
  return shape('svg', box);
}

function show(id, ...children) {
  byId(id).replaceChildren(...children);
}

// Parts of a whole as one bar; parts are [value, class].
function bar(parts, whole, label) {
  const svg = picture(100, 10, label, true);
  svg.append(shape('rect', { width: 100, height: 10, class: 'track' }));
  let x = 0;
  for (const [value, kind] of parts) {
    const width = whole > 0 ? (100 * value) / whole : 0;
    svg.append(shape('rect', { x, width, height: 10, class: kind }));
    x += width;
  }
  return svg;
}

function bars(id, rows, kind, none) {
  const most = Math.max(0, ...rows.map(([, value]) => value));
  const items = rows.map(([name, value]) => {
    const label = make('div', 'label', make('span', '', name), make('span', 'dim', number(value)));
    return make('div', '', label, bar([[value, kind]], most, `${name}: ${value}`));
  });
  show(id, ...(items.length ? items : [make('p', 'dim', none)]));
}

function duration(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const at = Math.max(0, units.findIndex(([size]) => seconds >= size));
  return units.slice(at < 0 ? 3 : at, at + 2)
    .map(([size, name], i) => `${Math.floor(i ? (seconds % units[at][0]) / size : seconds / size)} ${name}`)
    .join(' ');
}

const since = (unix) => (unix ? duration(Math.max(0, Date.now() / 1000 - unix)) : '');

function header(node, echo) {
  document.title = `${node.name} · nigh`;
  byId('node').textContent = node.name;
  byId('about').textContent = `nigh ${node.version} · up ${duration(node.uptime_seconds)}`;
  const phases = { warning: 'draining: GRACEFUL_SHUTDOWN', withdrawn: 'draining: withdrawn', drained: 'drained' };
  const phase = phases[echo.drain];
  const word = !node.healthy ? 'not healthy' : phase || (node.drained ? 'drained' : 'healthy');
  const kind = !node.healthy ? 'bad' : phase || node.drained ? 'warn' : 'good';
  byId('health').textContent = word;
  byId('health').className = `badge ${kind}`;
  byId('dot').className = `dot ${kind}`;
  byId('ailments').hidden = node.ailments.length === 0;
  show('ailments', ...node.ailments.map((text) => make('li', '', text)));
}

function rates(rows, now) {
  const total = { received: 0, answered: 0, dropped: 0 };
  for (const row of rows) {
    total.received += row.received;
    total.answered += row.answered;
    total.dropped += drops(row);
  }
  const rate = { received: 0, answered: 0, dropped: 0 };
  if (last) {
    const seconds = (now - last.now) / 1000;
    for (const key of Object.keys(rate)) {
      // A restarted node counts from zero again.
      rate[key] = Math.max(0, (total[key] - last.total[key]) / seconds);
    }
    history.push(rate.answered);
    if (history.length > HISTORY) history.shift();
  }
  last = { now, total };
  const tile = (value, name) => make('div', 'tile', make('b', '', number(Math.round(value))), make('span', 'dim', name));
  show('tiles', tile(rate.received, 'received a second'), tile(rate.answered, 'answered a second'),
    tile(rate.dropped, 'dropped a second'), tile(total.answered, 'answered in all'));
  chart();
}

function chart() {
  const top = Math.max(1, ...history);
  const svg = picture(HISTORY - 1, 60, 'answers a second in the last two minutes', true);
  const start = HISTORY - history.length;
  const points = history.map((value, i) => `${start + i},${(60 - (58 * value) / top).toFixed(2)}`);
  if (points.length > 1) {
    svg.append(shape('polygon', { points: `${start},60 ${points.join(' ')} ${HISTORY - 1},60`, class: 'area' }));
    svg.append(shape('polyline', { points: points.join(' '), class: 'curve' }));
  }
  show('chart', svg);
  byId('scale').textContent = `answers a second in the last two minutes, at most ${number(Math.round(Math.max(0, ...history)))}`;
}

function ledger(book) {
  const head = ['address', 'received', 'answered', 'passed', 'dropped', ''];
  const body = [...book.rows, { address: 'other', ...book.other }].map((row) => {
    const dropped = drops(row);
    const parts = [[row.answered, 'answered'], [row.passed, 'passed'], [dropped, 'dropped']];
    const cells = [row.address, number(row.received), number(row.answered), number(row.passed), number(dropped)];
    const picture = make('td', 'bar', bar(parts, row.received, `shares of ${row.address}`));
    return make('tr', '', ...cells.map((cell) => make('td', '', cell)), picture);
  });
  show('ledger', make('thead', '', make('tr', '', ...head.map((cell) => make('th', '', cell)))), make('tbody', '', ...body));
  const reasons = {};
  for (const row of [...book.rows, book.other]) {
    for (const [reason, count] of Object.entries(row.dropped || {})) {
      reasons[reason] = (reasons[reason] || 0) + count;
    }
  }
  const rows = Object.entries(reasons).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  bars('drops', rows, 'dropped', 'nothing was dropped');
}

function interfaces(list) {
  const modes = { native: ['native XDP', 'good'], generic: ['generic XDP', 'warn'], kernel: ['the kernel answers', 'warn'] };
  show('interfaces', ...list.map((item) => {
    const [mode, kind] = modes[item.mode] || ['nobody answers', 'bad'];
    const link = make('span', item.up ? 'badge good' : 'badge bad', item.up ? 'link up' : 'link down');
    const card = make('div', 'card', make('div', 'head', make('b', '', item.name), link, make('span', `badge ${kind}`, mode)));
    if (item.why) card.append(make('div', 'dim', item.why));
    return card;
  }));
}

function anycast(state) {
  byId('anycast').hidden = !state;
  byId('checks').hidden = !state;
  if (!state) return;
  byId('prefixes').textContent = state.prefixes.join(', ');
  show('upstreams', ...state.upstreams.map((up) => {
    const up_to_date = up.desired === up.advertised;
    const head = make('div', 'head', make('b', '', up.name), make('span', 'badge', up.session),
      make('span', `badge ${up_to_date && up.advertised !== 'nothing' ? 'good' : 'warn'}`, ({ nothing: 'not announced', all: 'announced', some: 'partly announced' })[up.advertised] || up.advertised));
    const card = make('div', 'card', head);
    if (up.prefixes.length) card.append(make('div', '', up.prefixes.join(', ')));
    const age = since(up.since);
    if (age) card.append(make('div', 'dim', `for ${age}`));
    if (!up_to_date) card.append(make('div', 'dim', `to become: ${up.desired}`));
    for (const text of [up.held_by, up.problem]) if (text) card.append(make('div', '', text));
    if (up.withdrawal) card.append(make('div', 'dim', `last withdrawal ${since(up.withdrawal.detected)} ago: ${up.withdrawal.fault}`));
    return card;
  }));
  const body = state.checks.map((check) => make('tr', '',
    make('td', '', check.name),
    make('td', '', make('span', check.healthy ? 'badge good' : 'badge bad', check.healthy ? 'healthy' : 'failed')),
    make('td', 'free', check.detail || '')));
  show('checklist', make('tbody', '', ...body));
}

function latency(state) {
  if (!state || !state.samples) return show('latency', make('p', 'dim', 'no samples yet'));
  const buckets = (state.buckets || []).filter((bucket) => bucket.count > 0);
  const parts = [];
  if (buckets.length) {
    const svg = picture(320, 110, 'histogram of the program’s run time');
    const most = Math.max(...buckets.map((bucket) => bucket.count));
    const step = 320 / buckets.length;
    buckets.forEach((bucket, i) => {
      const height = Math.max(1, (80 * bucket.count) / most);
      svg.append(shape('rect', { x: i * step + 1, y: 85 - height, width: Math.max(1, step - 2), height, class: 'answered' }));
      if (i % Math.ceil(buckets.length / 6) === 0) {
        const text = shape('text', { x: i * step + 1, y: 102 });
        text.textContent = `${number(bucket.le_ns)} ns`;
        svg.append(text);
      }
    });
    parts.push(svg);
  }
  const tile = (value, name) => make('div', 'tile', make('b', '', `${number(value)} ns`), make('span', 'dim', name));
  parts.push(make('div', 'tiles', tile(state.p50_ns, 'half'), tile(state.p90_ns, '90 of 100'), tile(state.p99_ns, '99 of 100')));
  parts.push(make('p', 'dim', `${number(state.samples)} samples`));
  show('latency', ...parts);
}

async function ask(path) {
  const response = await fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

async function refresh() {
  try {
    const [state, top] = await Promise.all([ask('api/v1/status'), ask('api/v1/echo/top')]);
    const echo = state.echo || {};
    const book = echo.ledger || { rows: [], other: { received: 0, answered: 0, passed: 0 } };
    header(state.node, echo);
    rates(book.rows, performance.now());
    anycast(echo.anycast);
    interfaces(echo.interfaces || []);
    ledger(book);
    latency(echo.latency);
    bars('top', ((top && top.sources) || []).map((row) => [row.prefix, row.requests]), 'passed', 'no source has been seen');
    byId('lost').hidden = true;
  } catch (error) {
    byId('lost').textContent = `The node does not answer (${error.message}); what is shown is old.`;
    byId('lost').hidden = false;
    byId('dot').className = 'dot bad';
    last = null;
  }
  // A page that nobody sees asks nothing.
  if (document.hidden) {
    document.addEventListener('visibilitychange', refresh, { once: true });
  } else {
    setTimeout(refresh, PERIOD);
  }
}

refresh();
