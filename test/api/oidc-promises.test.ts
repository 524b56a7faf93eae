import { expect, test } from 'vitest'

import { withoutTest } from '../support/titles.ts'

// Goal: a test proves each property of OIDC sessions on which OpenZiti clients rely. Method: the
// page has a row for each group of properties, with the names of the tests as a test run prints
// them: `file > block > test`.

const flow = 'api/oidc.test.ts > a log-in by the authorization code flow > '
const refresh = 'attacks/oidc/refresh.test.ts > '
const sessions = 'api/oidc-sessions.test.ts > '
const keys = 'attacks/oidc/session-keys.test.ts > '
const authorization = 'attacks/oidc/authorization.test.ts > '

const rows: Readonly<Record<string, readonly string[]>> = {
  'log-ins by each method, with the id in each place, with other content types, and with wrong credentials':
    [
      `${flow}returns tokens for the REST APIs, and opens one session`,
      `${flow}refuses a wrong password, an unknown authorization request id, and a body that is not a form`,
      `${flow}accepts the id of the authorization request in the query, and a JSON body`,
      'attacks/oidc/floods.test.ts > a request body > with another media type is refused at %s',
      `${refresh}a token of a client that has logged in by a certificate > is useless without the certificate`,
    ],
  'second factors during a log-in: a TOTP code, an external JWT, or both': [
    `${flow}asks for a TOTP code under the same id if the identity has MFA`,
    `${sessions}a log-in whose policy requires an external JWT > continues once its request carries a JWT for that identity`,
    `${sessions}a log-in whose policy requires an external JWT > accepts the JWT and a TOTP code in either order if both are required`,
  ],
  'MFA enrollment during a log-in': [
    'api/oidc-enrollment.test.ts > an identity whose policy requires a code enrolls in MFA during its log-in, which then continues',
  ],
  'a refresh preserves the audience, scopes, amr, session and time of the log-in': [
    'api/oidc.test.ts > tokens > belong to the same session after a refresh, and become invalid with that session',
    `${refresh}using a refresh token of an active session at two controllers at once writes nothing, and opens no second session`,
    `${refresh}a refresh token is refused with %s`,
    `${refresh}a scope that a client omitted in one refresh cannot be requested in a later refresh`,
  ],
  'a token exchange grants no more than the exchanged token allows': [
    `${refresh}an access token cannot be exchanged for a refresh token`,
    `${refresh}an access token obtained in exchange for another one expires with the original token, even after several exchanges`,
    `${refresh}a refresh token of an identity > works at each controller until the identity logs out`,
  ],
  'a policy that requires a TOTP code makes tokens without a second factor invalid': [
    `${refresh}a refresh token of an identity > is refused without the second factor that the identity has enrolled since the log-in`,
  ],
  'tokens are bound only to the certificate of the log-in': [
    `${refresh}a token of a client that has logged in by a certificate > is not bound to a certificate that was presented with a password`,
  ],
  'a certificate that is requested during a log-in, and the tokens that are bound to it': [
    `${keys}the tokens of a client that requested a certificate during its log-in > are useless without the certificate, wherever they are presented`,
    `${keys}the tokens of a client that requested a certificate during its log-in > are also bound to a certificate that was requested in the first step of a log-in with a second factor`,
    `${keys}the tokens of a client that requested a certificate during its log-in > are also valid with the certificate of the log-in, if the client logged in with a certificate`,
    `${keys}a request for a certificate > results in a certificate for the identity and the session, even if the request contains other names`,
    `${keys}a request for a certificate > fails when the code is redeemed if no certificate can be signed for it, and then leaves no session`,
  ],
  'a certificate for another key at a refresh or exchange; unbound tokens stay unbound': [
    `${keys}the tokens of a client that requested a certificate during its log-in > are valid, after a refresh, only with the key that was sent in that refresh`,
    `${keys}the tokens of a client that requested a certificate during its log-in > can be exchanged only with the certificate; the new tokens are bound to another key if requested`,
    `${keys}a request for a certificate > is ignored in a refresh of tokens that are not bound to a key, and the new tokens are not bound either`,
  ],
  'each challenge for session tokens, access tokens and external JWTs': [
    `${sessions}the challenge of a refused request > names both kinds of tokens if the request has no token`,
    `${sessions}the challenge of a refused request > reports an access token that is malformed or has no session`,
    `${sessions}the challenge of a refused request > reports an expired access token`,
    `${sessions}the challenge of a refused request > is absent if the operation works without a session`,
    'api/external-jwt/log-in.test.ts > a log-in by an external JWT > is refused for a JWT %s, and only the operator sees the reason',
    'api/external-jwt/second-factor.test.ts > a session whose policy requires an external JWT > names the signer of a missing, invalid or expired JWT in its challenge',
  ],
  'error statuses; temporary failures are not OAuth errors': [
    'api/oidc.test.ts > a request to authorize > is refused with %s %s',
    'attacks/oidc/floods.test.ts > temporary failures are not reported as OAuth errors, because clients would then log in again',
    'api/oidc.test.ts > tokens > are refused by userinfo once their session has ended',
  ],
  'discovery and issuers by host and port': [
    'api/oidc.test.ts > discovery names the issuer by the requested host, and its keys verify the tokens',
    'api/oidc.test.ts > a request to authorize > is answered with 404 at a foreign host name',
    `${authorization}a controller as an OIDC provider > does not serve the host name %s`,
    `${authorization}a controller as an OIDC provider > puts its issuer into each response of a log-in, before the code`,
  ],
  'the current session: its id is stable, and it expires with its access token': [
    `${sessions}a session shows the expiry of its access token, and the time when the session started`,
  ],
  'tokens in exchange for a TOTP code': [
    `${sessions}an exchange of a TOTP code for tokens > succeeds for a valid code in an OIDC session, and for its repetition with the same time of issue`,
    `${sessions}an exchange of a TOTP code for tokens > is refused if the identity has no second factor`,
  ],
  'revocations: types, effect on REST and refresh, later sessions': [
    `${refresh}a refresh token of an identity > becomes invalid by a revocation of the type %s`,
    `${refresh}a refresh token of an identity > becomes invalid when an administrator disables the identity, and stays invalid once the identity is enabled again`,
    `${refresh}a refresh token of an identity > becomes invalid when an administrator deletes the identity or its session`,
  ],
  'the next certificate of a client: the session requests it, and continues with it': [
    'api/oidc-certificates.test.ts > a client whose certificate must be extended, with a new key: %s > sees the request to extend in its session, and keeps the session with the next certificate',
  ],
  'certificates of the session, and its config types': [
    'api/oidc-certificates.test.ts > an OIDC session gets session certificates, with the leaf before its issuers',
    'api/oidc-certificates.test.ts > an OIDC session has the config types that its client requested, by name or id',
    'router/edge/bearer-sessions.test.ts > A client with an access token is admitted > with any certificate of its identity, even if the token is bound to another one',
  ],
  'OIDC is announced in addition to the REST log-in, whose sessions continue': [
    'api/meta.test.ts > OIDC is announced and served once every member supports it',
    'api/meta.test.ts > disabled OIDC is neither announced nor served, and the REST log-in still works',
    'api/enrollment/certificates.test.ts > log-in by certificate > accepts no body, an empty body, and a body with client details, which are stored',
  ],
  'a token that replaces another token at a router': [
    'router/edge/bearer-sessions.test.ts > A token that replaces a client’s earlier token > keeps all channels of its session open after the earlier token expires',
    'router/edge/bearer-sessions.test.ts > A token that replaces a client’s earlier token > is refused, and the channel is closed, if the token does not belong to the session',
  ],
  'posture reports through routers, evaluated again after each change': [
    'api/oidc-posture.test.ts > an OIDC client > has its service session before it reports posture, and can dial after it reported posture to its router',
    'api/oidc-posture.test.ts > an OIDC client > loses its circuits when its device reports to the router that a check fails',
    'api/oidc-posture.test.ts > a router that evaluates posture itself > ends its client’s circuits only once the device reports a change of posture to a controller',
    'attacks/oidc/posture-at-a-router.test.ts > a router that claims to evaluate posture > is not trusted to report a second factor',
    'router/edge/client-postures.test.ts > a client’s posture report > reaches the controller before the client’s next request is evaluated',
    'router/edge/client-postures.test.ts > a client’s posture report > is sent again to a controller that reconnects',
  ],
  'channels at a router close when their session is revoked; later log-ins remain valid': [
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when its session is revoked',
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when earlier tokens of its identity are revoked',
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when its identity is disabled or deleted',
  ],
}

test.each(Object.entries(rows))('%s: each test that is listed as proof exists', (_row, proofs) => {
  expect(proofs.length).toBeGreaterThan(0)
  expect(withoutTest(proofs)).toEqual([])
})
