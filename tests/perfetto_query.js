// Load a trace into Perfetto's engine (WebAssembly) and print one line per query: its answer as the engine's own
// messages, in base64. node perfetto_query.js ENGINE_FOLDER TRACE QUERY…
const P = process, fs = require('fs'), path = require('path'), vm = require('vm');
const [D, file, ...queries] = P.argv.slice(2);
global.self = global;
global.location = {href: 'file://' + D + '/engine_bundle.js'};
global.importScripts = () => {};
global.WorkerGlobalScope = function () {};
const read = (u) => {
  let p = String(u).replace('file://', '');
  if (!path.isAbsolute(p)) p = path.join(D, path.basename(p));
  return fs.readFileSync(p);
};
global.XMLHttpRequest = class {
  open(m, u) { this.u = u; }
  overrideMimeType() {}
  send() {
    const b = read(this.u);
    this.status = 200;
    this.response = b.buffer.slice(b.byteOffset, b.byteOffset + b.length);
    if (this.onload) this.onload();
  }
};
global.fetch = async (u) => new Response(read(u), {headers: {'content-type': 'application/wasm'}});
global.process = undefined;
console.log = console.warn = () => {};
vm.runInThisContext(fs.readFileSync(D + '/engine_bundle.js', 'utf8'));
const varint = (n) => {
  const o = [];
  n = BigInt(n);
  do { const b = Number(n & 127n); n >>= 7n; o.push(n ? b | 128 : b); } while (n);
  return Buffer.from(o);
};
const field = (f, b) => Buffer.concat([varint(f << 3 | 2), varint(b.length), b]);
const number = (f, n) => Buffer.concat([varint(f << 3), varint(n)]);
let sequence = 0;
const rpc = (method, ...x) => field(1, Buffer.concat([number(1, ++sequence), number(2, method), ...x]));
const port = {out: [], postMessage(d) { port.out.push(Buffer.from(d)); }};
setTimeout(() => {
  self.onmessage({data: port});
  const send = (message) => port.onmessage({data: new Uint8Array(message)});
  const data = fs.readFileSync(file);
  for (let at = 0; at < data.length; at += 1 << 24) send(rpc(1, field(101, data.subarray(at, at + (1 << 24)))));
  send(rpc(2));
  for (const query of queries) {
    port.out.length = 0;
    send(rpc(3, field(103, field(1, Buffer.from(query)))));
    const line = Buffer.from(Buffer.concat(port.out).toString('base64') + '\n');
    for (let at = 0; at < line.length;) {
      try { at += fs.writeSync(1, line, at); } catch (e) { if (e.code !== 'EAGAIN') throw e; }
    }
  }
  P.exit(0);
}, 1500);
