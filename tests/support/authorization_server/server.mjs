// A real authorization server on a free port, which it prints. Each line after that is a request to its token endpoint.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

const { Provider } = await import(pathToFileURL(process.argv[2]).href);
const seconds = Number(process.argv[3] || 300);
const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const scopes = 'tools:read tools:write';

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'by-hand',
      client_secret: 'a-client-secret-of-the-test',
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  scopes: ['openid', 'offline_access', ...scopes.split(' ')],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_, client, code) => client.grantTypeAllowed('refresh_token') && code.scopes.has('offline_access'),
  clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: scopes,
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: seconds,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  cookies: { keys: ['only-of-the-test'] },
});

const note = (outcome) => (context) =>
  process.stdout.write(`${JSON.stringify({ outcome, grant: context.oidc.params?.grant_type ?? context.path })}\n`);
provider.on('grant.success', note('given'));
provider.on('grant.error', note('refused'));
provider.on('registration_create.success', note('registered'));
server.on('request', provider.callback());
process.stdout.write(`${issuer}\n`);
