// The status page: asks /api/v1/status once a second and shows the answer.
//
// Everything that comes from the node is put into the page as text (textContent, attributes of SVG
// shapes), never as markup, so nothing in it can act.
'use strict';

const PERIOD = 1000;       // ms between two questions
const HISTORY = 120;       // samples of the rate that are drawn
const SVG = 'http://www.w3.org/2000/svg'; // a name, nothing is fetched from there

// What was counted at the last question, and the rates drawn; one for each job.
const echoRates = { history: [], last: null };
const oracleRates = { history: [], last: null };
const probeRates = { history: [], last: null };
const gateRates = [];
// The archive is asked less often than the state.
const MESH_PERIOD = 10000; // ms
let meshAt = -Infinity;
let everShown = false;

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

function bars(id, rows, kind, none, unit = number) {
  const most = Math.max(0, ...rows.map(([, value]) => value));
  const items = rows.map(([name, value]) => {
    const label = make('div', 'label', make('span', '', name), make('span', 'dim', unit(value)));
    return make('div', '', label, bar([[value, kind]], most, `${name}: ${unit(value)}`));
  });
  show(id, ...(items.length ? items : [make('p', 'dim', none)]));
}

function duration(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const found = units.findIndex(([size]) => seconds >= size);
  const at = found < 0 ? 3 : found;
  return units.slice(at, at + 2)
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
  byId('problems').hidden = node.problems.length === 0;
  show('problems', ...node.problems.map((text) => make('li', '', text)));
}

// Rates a second from totals at two times; the rate named `drawn` goes into the history.
function perSecond(memory, total, now, drawn) {
  const rate = Object.fromEntries(Object.keys(total).map((key) => [key, 0]));
  if (memory.last) {
    const seconds = (now - memory.last.now) / 1000;
    for (const key of Object.keys(rate)) {
      // A restarted node counts from zero again.
      rate[key] = Math.max(0, (total[key] - memory.last.total[key]) / seconds);
    }
    memory.history.push(rate[drawn]);
    if (memory.history.length > HISTORY) memory.history.shift();
  }
  memory.last = { now, total };
  return rate;
}

const tile = (value, name) => make('div', 'tile', make('b', '', number(value)), make('span', 'dim', name));

function rates(rows, now) {
  const total = { received: 0, answered: 0, dropped: 0 };
  for (const row of rows) {
    total.received += row.received;
    total.answered += row.answered;
    total.dropped += drops(row);
  }
  const rate = perSecond(echoRates, total, now, 'answered');
  show('tiles', tile(Math.round(rate.received), 'received a second'), tile(Math.round(rate.answered), 'answered a second'),
    tile(Math.round(rate.dropped), 'dropped a second'), tile(total.answered, 'answered in total'));
  chart('chart', 'scale', echoRates.history, 'answers');
}

function chart(at, scale, history, what, unit = (value) => number(Math.round(value))) {
  const top = Math.max(1, ...history);
  const svg = picture(HISTORY - 1, 60, `${what} a second in the last two minutes`, true);
  const start = HISTORY - history.length;
  const points = history.map((value, i) => `${start + i},${(60 - (58 * value) / top).toFixed(2)}`);
  if (points.length > 1) {
    svg.append(shape('polygon', { points: `${start},60 ${points.join(' ')} ${HISTORY - 1},60`, class: 'area' }));
    svg.append(shape('polyline', { points: points.join(' '), class: 'curve' }));
  }
  show(at, svg);
  byId(scale).textContent = `${what} a second in the last two minutes, at most ${unit(Math.max(0, ...history))}`;
}

// Counts by name as rows of bars, the largest first and none of zero; underscores are blanks.
function counted(...objects) {
  const sums = {};
  for (const object of objects) {
    for (const [name, count] of Object.entries(object || {})) sums[name] = (sums[name] || 0) + Number(count);
  }
  return Object.entries(sums).filter(([, count]) => count > 0)
    .map(([name, count]) => [name.replaceAll('_', ' '), count]).sort((a, b) => b[1] - a[1]);
}

function oracle(state, now) {
  const queries = state.queries;
  const driver = state.driver || { answered: 0, dropped: {}, filter_dropped: 0 };
  const total = {
    sockets: sum(queries.replies),
    driver: driver.answered,
    dropped: sum(queries.dropped) + sum(driver.dropped) + driver.filter_dropped,
  };
  total.all = total.sockets + total.driver;
  const rate = perSecond(oracleRates, total, now, 'all');
  show('oracle-tiles', tile(Math.round(rate.all), 'replies a second'), tile(Math.round(rate.driver), 'of them in the driver'),
    tile(Math.round(rate.dropped), 'dropped a second'), tile(total.all, 'replies in total'));
  chart('oracle-chart', 'oracle-scale', oracleRates.history, 'replies');
  const tables = state.tables;
  byId('oracle-tables').textContent = tables
    ? `generation ${number(tables.generation)} for ${since(tables.since)}, built in ${tables.build_seconds.toFixed(3)} s · `
      + `${number(tables.routers)} routers, ${number(tables.links)} links, ${number(tables.groups)} groups of prefixes · ${number(Math.round(tables.bytes / 1e6))} MB`
    : 'no tables yet: requests are answered "server busy"';
  const { limit } = state;
  const bucket = limit.rate
    ? `at most ${number(limit.rate)} requests a second and ${number(limit.burst)} at once for each /${limit.prefix4} and /${limit.prefix6}`
    : 'no limit for a source';
  const places = ((state.driver || {}).interfaces || []).map((item) => `${item.name}: ${item.mode ? `${item.mode} XDP` : item.why || 'taken off'}`);
  byId('oracle-where').textContent = [`Proxidor at ${state.listen.join(', ')}`, ...places, bucket].join(' · ');
  show('oracle-metrics', make('tbody', '', ...state.metrics.map((metric) => make('tr', '', make('td', '', metric.name), make('td', 'free', metric.cost)))));
  const kinds = { live: 'good', loading: 'warn', waiting: 'warn' };
  const head = ['feed', 'state', 'for', 'routers', 'links', 'networks', 'routes', 'changes', ''];
  const body = state.feeds.map((feed) => make('tr', '',
    make('td', '', feed.name),
    make('td', '', make('span', `badge ${kinds[feed.state] || 'bad'}`, feed.state)),
    ...[since(feed.since), ...[feed.routers, feed.links, feed.prefixes, feed.routes, feed.changes].map(number)].map((cell) => make('td', '', cell)),
    make('td', 'free', feed.detail)));
  show('feeds', make('thead', '', make('tr', '', ...head.map((cell) => make('th', '', cell)))), make('tbody', '', ...body));
  bars('oracle-replies', counted(queries.replies, { no_error: driver.answered }), 'answered', 'no requests yet');
  bars('oracle-drops', counted(queries.dropped, driver.dropped, { source_limit: driver.filter_dropped }), 'dropped', 'nothing was dropped');
}

// ALTO's requests by status of HTTP, and those that were refused.
function alto(state) {
  for (const part of document.getElementsByClassName('alto')) part.hidden = !state;
  if (!state) return;
  const { figures } = state;
  byId('alto-where').textContent = `at ${state.listen.join(', ')} · ${number(figures.connections_open)} connections and ${number(figures.streams_open)} streams open`;
  byId('alto-certificate').textContent = `certificate ${state.fingerprint}`;
  const statuses = {};
  for (const { status, count } of figures.requests) statuses[`HTTP ${status}`] = (statuses[`HTTP ${status}`] || 0) + count;
  bars('alto-requests', counted(statuses), 'answered', 'no requests yet');
  bars('alto-refused', counted(figures.refused), 'dropped', 'no refusals yet');
}

// Nanoseconds as people read them.
function span(ns) {
  if (ns === null || ns === undefined) return 'unbounded';
  const size = Math.abs(ns);
  const [unit, name] = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s']].find(([least]) => size >= least) || [1, 'ns'];
  return `${(ns / unit).toFixed(unit > 1 ? 1 : 0)} ${name}`;
}

function grid(id, head, rows, none) {
  if (!rows.length) return show(id, make('tbody', '', make('tr', '', make('td', 'dim free', none))));
  const cells = (tag, row) => make('tr', '', ...row.map((cell) => (cell instanceof Node ? cell : make(tag, '', cell))));
  return show(id, make('thead', '', cells('th', head)), make('tbody', '', ...rows.map((row) => cells('td', row))));
}

function probe(state, now) {
  const delays = state.delays || { sent: 0, reflected: 0, missed: 0 };
  const { archive, station } = state;
  const rate = perSecond(probeRates, { sent: delays.sent, reflected: delays.reflected }, now, 'sent');
  show('probe-tiles', tile(Math.round(rate.sent), 'test packets sent a second'), tile(Math.round(rate.reflected), 'reflected for others a second'),
    tile(delays.missed, 'missed their time'), tile(station.leases, 'sessions with others'), tile(archive.written, 'records written'));
  const error = state.clock_error_ns === null ? 'its error is unknown, so no delay has a bound' : `right within ${span(state.clock_error_ns)}`;
  byId('probe-clock').textContent = `station ${state.name} \u00b7 clock: ${error} (${state.clock.source})`;
  byId('probe-now').textContent = state.running.length
    ? `runs now: ${state.running.map((run) => `${run.test} (${run.what}) to ${run.to}`).join(', ')}` : 'no test of the timetable runs now';
  const whys = state.peers.some((peer) => peer.why);
  grid('probe-peers', ['station', 'state', 'for', 'its clock', ...(whys ? [''] : [])], state.peers.map((peer) => [
    peer.name,
    make('td', '', make('span', peer.reached ? 'badge good' : 'badge bad', peer.reached ? 'reached' : 'not reached')),
    duration(peer.since_seconds),
    peer.clock_error_ns === null ? 'no bound' : `within ${span(peer.clock_error_ns)}`,
    ...(whys ? [make('td', 'free', peer.why || '')] : []),
  ]), 'no tests with other stations');
  grid('probe-tests', ['test', 'what', 'done', 'failed', 'skipped'], state.tests.map((test) => [
    test.test, test.what, number(test.done), number(test.failed), number(test.skipped),
  ]), 'no measurements yet');
  bars('probe-accepted', counted(station.accepted), 'answered', 'no requests yet');
  bars('probe-refused', counted(station.refused, state.requests_refused, delays.refused, delays.reflector_refused), 'dropped', 'nothing was refused');
}

// Delays from the archive, every now and then.
async function mesh(now) {
  if (now - meshAt < MESH_PERIOD) return;
  meshAt = now;
  const answer = await ask('api/v1/probe/show?what=mesh&direction=round-trip&since=1h');
  grid('probe-mesh', ['from', 'to', 'median', 'true median from', 'to', 'lost', 'sent'], answer.mesh.cells.map((cell) => [
    cell.from, cell.to,
    ...(cell.median ? [cell.median.estimate_ns, cell.median.low_ns, cell.median.high_ns].map(span) : ['none', '', '']),
    number(cell.lost), number(cell.sent),
  ]), 'no delays were measured in the last hour');
}

// Bits a second in the unit that leaves three digits or so.
function bits(value) {
  const units = ['bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s'];
  let at = 0;
  let rest = Number(value || 0);
  while (rest >= 1000 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${rest.toLocaleString('en', { maximumSignificantDigits: 3 })} ${units[at]}`;
}

function gate(state) {
  const rates = Object.entries(state.rates).filter(([, rate]) => rate > 0).sort((a, b) => b[1] - a[1]);
  const all = sum(state.rates);
  gateRates.push(all);
  if (gateRates.length > HISTORY) gateRates.shift();
  const { flows } = state;
  show('gate-tiles', make('div', 'tile', make('b', '', bits(all)), make('span', 'dim', 'now')), tile(flows.decided, 'flows decided'),
    tile(flows.undecided, 'undecided'), tile(flows.seen, 'flows in all'), tile(sum(state.refused), 'of them refused'));
  chart('gate-chart', 'gate-scale', gateRates, 'bits', bits);
  byId('gate-off').hidden = !state.bypass;
  byId('gate-where').textContent = [`internal: ${state.internal.join(', ')}`, `at most ${number(flows.limit)} decided flows`,
    ...(flows.evicted ? [`${number(flows.evicted)} evicted undecided`] : []),
    ...(flows.full ? [`${number(flows.full)} verdicts did not fit into the table`] : []),
    ...(state.taken_over ? ['took over from an earlier process'] : [])].join(' \u00b7 ');
  bars('gate-rates', rates.slice(0, 12), 'answered', 'no traffic', bits);
  bars('gate-refused', counted(state.refused).slice(0, 12), 'dropped', 'nothing was refused');
  const { files } = state;
  byId('gate-scanned').hidden = !files;
  bars('gate-scans', files ? counted({ clean: files.clean, found: files.found, 'not scanned': files.unscanned }) : [], 'passed', 'nothing was scanned');
  grid('gate-recent', ['ago', make('th', 'free', 'what')], state.recent.slice(0, 12).map((event) => [
    duration(event.seconds_ago), make('td', event.threat ? 'free warning' : 'free', event.text),
  ]), 'nothing was refused or scanned');
  const runtime = new Set(state.runtime_rules.map((rule) => rule.name));
  grid('gate-rules', ['rule', 'for', 'matched'], state.rules.map((rule) => [
    rule.name, runtime.has(rule.name) ? `${rule.of}s, runtime` : `${rule.of}s`, number(rule.count),
  ]), 'no rules: everything passes');
  grid('gate-limits', ['limit', 'for', 'flows', 'MB to internal', 'MB from internal', 'packets dropped'], state.limits.map((limit) => [
    limit.limit, limit.share || 'all together', number(limit.flows),
    number(Math.round(limit.bytes_to_internal / 1e6)), number(Math.round(limit.bytes_from_internal / 1e6)), number(limit.dropped),
  ]), 'no limit is in use');
  grid('gate-packets', ['hook', 'received', make('th', 'free', 'outcome'), ''], Object.entries(state.packets).map(([hook, packets]) => {
    const parts = counted(packets.outcomes);
    const kinds = parts.map(([name, count]) => [count, /^pass/.test(name) ? 'answered' : /^(held|redirected)/.test(name) ? 'passed' : 'dropped']);
    return [hook.replaceAll('_', ' '), number(packets.received),
      make('td', 'free', parts.map(([name, count]) => `${name} ${number(count)}`).join(', ') || 'none came'),
      make('td', 'bar', bar(kinds, packets.received, `outcome of packets ${hook}`))];
  }), 'no packet was seen');
  byId('gate-copies').textContent = `${number(state.copies.read)} copies of packets were inspected, ${number(state.copies.missed)} were not because the ring was full, ${number(state.copies.bad_checksum)} because of a wrong checksum`;
  byId('gate-audit').hidden = !state.audit;
  if (state.audit) {
    const { audit } = state;
    show('gate-audit-tiles', tile(audit.written, 'records written'), tile(audit.waiting, 'waiting'), tile(sum(audit.lost), 'lost'),
      tile(audit.skipped, 'skipped'), tile(audit.files_deleted, 'old files deleted'));
    byId('gate-audit-error').hidden = !audit.error;
    byId('gate-audit-error').textContent = audit.error || '';
  }
}

function ledger(counts) {
  const head = ['address', 'received', 'answered', 'passed', 'dropped', ''];
  const body = [...counts.rows, { address: 'other', ...counts.other }].map((row) => {
    const dropped = drops(row);
    const parts = [[row.answered, 'answered'], [row.passed, 'passed'], [dropped, 'dropped']];
    const cells = [row.address, number(row.received), number(row.answered), number(row.passed), number(dropped)];
    const picture = make('td', 'bar', bar(parts, row.received, `shares of ${row.address}`));
    return make('tr', '', ...cells.map((cell) => make('td', '', cell)), picture);
  });
  show('ledger', make('thead', '', make('tr', '', ...head.map((cell) => make('th', '', cell)))), make('tbody', '', ...body));
  const rows = counted(...[...counts.rows, counts.other].map((row) => row.dropped));
  bars('drops', rows, 'dropped', 'nothing was dropped');
}

function interfaces(list) {
  const modes = { native: ['native XDP', 'good'], generic: ['generic XDP', 'warn'], kernel: ['the kernel answers', 'warn'] };
  show('interfaces', ...list.map((item) => {
    const [mode, kind] = modes[item.mode] || ['no answer', 'bad'];
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
      ...(up.bfd ? [make('span', `badge ${up.bfd.state === 'Up' ? 'good' : 'warn'}`, `BFD ${up.bfd.state}`)] : []),
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
  const time = (value, name) => make('div', 'tile', make('b', '', `${number(value)} ns`), make('span', 'dim', name));
  parts.push(make('div', 'tiles', time(state.p50_ns, 'p50'), time(state.p90_ns, 'p90'), time(state.p99_ns, 'p99')));
  parts.push(make('p', 'dim', `${number(state.samples)} samples`));
  show('latency', ...parts);
}

async function ask(path) {
  const token = sessionStorage.getItem('token');
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { cache: 'no-store', headers, signal: AbortSignal.timeout(5000) });
  byId('login').hidden = response.status !== 401;
  byId('refused').hidden = !token;
  if (!response.ok) throw Object.assign(new Error(`${path} answered ${response.status}`), { status: response.status });
  return response.json();
}

async function refresh() {
  try {
    const state = await ask('api/v1/status');
    const now = performance.now();
    for (const job of ['echo', 'oracle', 'probe', 'gate']) {
      // Of a job that has failed there is nothing to show but its problem.
      if (state[job] && state[job].failed) delete state[job];
      for (const part of document.getElementsByClassName(job)) part.hidden = !state[job];
    }
    header(state.node, state.echo || {});
    if (state.oracle) oracle(state.oracle, now);
    alto(state.oracle && state.oracle.alto);
    if (state.probe) {
      probe(state.probe, now);
      await mesh(now);
    }
    if (state.gate) gate(state.gate);
    else for (const part of ['gate-scanned', 'gate-audit']) byId(part).hidden = true;
    anycast(state.echo && state.echo.anycast);
    if (state.echo) {
      const echo = state.echo;
      const top = await ask('api/v1/echo/top');
      const counts = echo.ledger || { rows: [], other: { received: 0, answered: 0, passed: 0 } };
      rates(counts.rows, now);
      interfaces(echo.interfaces || []);
      ledger(counts);
      latency(echo.latency);
      bars('top', ((top && top.sources) || []).map((row) => [row.prefix, row.requests]), 'passed', 'no source has been seen');
    }
    byId('lost').hidden = true;
    everShown = true;
  } catch (error) {
    const refused = error.status === 401;
    byId('lost').textContent = refused ? 'What is shown is old.' : `The node does not answer (${error.message}); the data shown is old.`;
    byId('lost').hidden = refused && !everShown;
    byId('dot').className = 'dot bad';
    echoRates.last = oracleRates.last = probeRates.last = null;
  }
  // A page that nobody sees asks nothing.
  if (document.hidden) {
    document.addEventListener('visibilitychange', refresh, { once: true });
  } else {
    setTimeout(refresh, PERIOD);
  }
}

// The token is kept for as long as the tab is open.
byId('login').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', byId('token').value.trim());
});

refresh();
