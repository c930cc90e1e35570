// An OpenID Connect server for the tests: node server.js <port> <redirect address>
// Tests change people by PUT /people/<name> {groups: [...]} and DELETE /people/<name>.
import http from 'node:http';
import { once } from 'node:events';

import Provider from 'oidc-provider';

const [port, redirect] = process.argv.slice(2);
const people = new Map();

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: ['basic', 'post'].map((method) => ({
    client_id: `almanac-${method}`,
    client_secret: 'planted-openid-secret',
    redirect_uris: [redirect],
    grant_types: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_method: `client_secret_${method}`,
  })),
  cookies: { keys: ['tests'] },
  // As many providers do, names are told by the userinfo endpoint alone.
  claims: { openid: ['sub', 'groups'], profile: ['preferred_username', 'name'], email: ['email'] },
  findAccount: (_, id) => {
    const person = people.get(id);
    return person && { accountId: id, claims: () => ({ sub: id, preferred_username: id, ...person }) };
  },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  features: { devInteractions: { enabled: true } },
});

const serve = provider.callback();
const server = http.createServer(async (request, response) => {
  const [, name] = request.url.match(/^\/people\/(.+)$/) ?? [];
  if (!name) return serve(request, response);
  if (request.method === 'DELETE') people.delete(name);
  else people.set(name, JSON.parse((await request.toArray()).join('')));
  return response.writeHead(204).end();
});
server.listen(Number(port), '127.0.0.1');
await once(server, 'listening');
console.log('ready');
