// Runs the status page's script once, in a document whose elements exist and take everything:
//   node page.js SCRIPT URL
// Fails where the script ends with an error, with what the page would then show.
'use strict';

class Node {}

// Anything: an element, a list of none, a function that returns anything.
function anything() {
  const kept = { [Symbol.iterator]: function* none() {}, [Symbol.toPrimitive]: () => '' };
  return new Proxy(function any() {}, {
    get: (_, key) => (key in kept ? kept[key] : (kept[key] = anything())),
    set: (_, key, value) => { kept[key] = value; return true; },
    apply: () => anything(),
    getPrototypeOf: () => Node.prototype,
  });
}

const [, , script, url] = process.argv;
const byId = new Map();
const real = fetch;
AbortSignal.timeout = () => undefined; // the test has a limit of its own
Object.assign(globalThis, {
  Node,
  window: anything(),
  location: anything(),
  sessionStorage: { getItem: () => null },
  fetch: (path, options) => real(new URL(path, url), options),
  document: {
    getElementById: (id) => byId.get(id) || byId.set(id, anything()).get(id),
    getElementsByClassName: () => [],
    createElement: anything,
    createElementNS: anything,
    addEventListener: () => {},
    hidden: true, // so it asks once
  },
});
process.on('exit', () => {
  if (byId.get('login') && !byId.get('login').hidden) {
    console.error('the token is asked for');
    process.exitCode = 1;
    return;
  }
  const lost = byId.get('lost');
  if (!lost || lost.hidden !== true) {
    console.error(lost ? lost.textContent : 'nothing was shown');
    process.exitCode = 1;
  }
});
require('vm').runInThisContext(require('fs').readFileSync(script, 'utf8'), script);
