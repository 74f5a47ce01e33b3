// Numbers, words and elements of the map's page.
'use strict';

function short(value) {
  const unit = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']].find(([size]) => value >= size);
  return unit ? `${(value / unit[0]).toFixed(1)} ${unit[1]}` : `${Math.round(value)} `;
}
const number = (value) => Number(value).toLocaleString('en');

// '2.5ms' as seconds, '10Mbit' as bits a second.
function read(text, units) {
  const parts = /^([\d.]+)(.*)$/.exec(text || '');
  return parts && units[parts[2]] ? parts[1] * units[parts[2]] : null;
}
const seconds = (text) => read(text, { s: 1, ms: 1e-3, us: 1e-6, 'µs': 1e-6, ns: 1e-9 });
const rateOf = (link) => read(link.settings.rate, { bit: 1, kbit: 1e3, Mbit: 1e6, Gbit: 1e9, Tbit: 1e12 });
const isUp = (link) => link.settings.up !== false;

const linkText = (link) => (link.wire ? 'wire, ' : '') + settingsText(link.settings);
function settingsText(settings) {
  const words = Object.entries(settings).map(([key, value]) => (key === 'up' ? (value ? 'up' : 'DOWN') : `${key} ${value}`));
  return words.join(', ') || 'no delay';
}

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}
const line = (...children) => make('p', '', ...children);
function rows(head, body) {
  const cells = (tag, row) => make('tr', '', ...row.map((cell) => make(tag, '', cell)));
  return [make('thead', '', cells('th', head)), make('tbody', '', ...body.map((row) => cells('td', row)))];
}
function button(text, act) {
  const element = make('button', '', text);
  element.type = 'button';
  element.addEventListener('click', act);
  return element;
}
// The same content is left alone, so that focus and selection stay.
function show(element, ...children) {
  if (element.textContent === make('div', '', ...children).textContent) return;
  const focused = element.contains(document.activeElement) ? [...element.querySelectorAll('button')].indexOf(document.activeElement) : -1;
  element.replaceChildren(...children);
  if (focused >= 0) element.querySelectorAll('button')[focused]?.focus();
}
