// Reads tools, one JSON text a line; prints each one's mcp-tool/1 digest, and `-` for none.
//
// An implementation of its own: the projection is written again here, RFC 8785 is the package
// canonicalize, installed beside this file.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import canonicalize from 'canonicalize';

const MEMBERS = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations', 'execution'];

const out = [];
for (const line of readFileSync(0, 'utf8').split('\n').filter((line) => line !== '')) {
  const tool = JSON.parse(line);
  const projection = {};
  for (const key of MEMBERS) {
    if (tool[key] !== undefined && tool[key] !== null) projection[key] = tool[key];
  }
  out.push(projection.inputSchema === undefined
    ? '-'
    : createHash('sha256').update(canonicalize(projection), 'utf8').digest('hex'));
}
console.log(out.join('\n'));
