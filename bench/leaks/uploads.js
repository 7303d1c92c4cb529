// SPDX-License-Identifier: Apache-2.0
// A fastify server that keeps what is uploaded: uploads.js PORT
//
// job: fastify
//   build: npm install --silent --no-fund --no-audit --prefix $OUT/fastify fastify@5.2.0
//   env: NODE_PATH=$OUT/fastify/node_modules
//   start: node --perf-basic-prof $HERE/uploads.js $PORT
//   load: $HERE/load.py http $PORT /upload 60
//   expect: grows keepUpload
// job: fastify-plain
//   env: NODE_PATH=$OUT/fastify/node_modules
//   start: node $HERE/uploads.js $PORT
//   load: $HERE/load.py http $PORT /upload 60
//   expect: grows ArrayBuffer|Buffer|BackingStore|node
const fastify = require('fastify')();
const uploads = [];

function keepUpload(request) {
  uploads.push(Buffer.alloc(20000, 'x'));
  return uploads.length;
}

fastify.get('/upload', async (request) => ({ kept: keepUpload(request) }));
fastify.listen({ port: Number(process.argv[2]), host: '127.0.0.1' });
