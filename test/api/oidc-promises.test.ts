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
      `${flow}accepts the id of the authorization request as a query parameter, and accepts a JSON body`,
      'attacks/oidc/floods.test.ts > a request body of an OIDC log-in > that is neither a form nor JSON is refused at %s',
      `${refresh}a token of a client that presented a certificate at its log-in > is useless without the certificate if the client logged in by certificate`,
    ],
  'second factors during a log-in: a TOTP code, an external JWT, or both': [
    `${flow}asks for a TOTP code under the same log-in id if the identity has MFA`,
    `${sessions}a log-in whose policy requires an external JWT > continues once a request of the log-in contains a JWT for the same identity`,
    `${sessions}a log-in whose policy requires an external JWT > accepts the JWT and a TOTP code in either order if both are required`,
  ],
  'MFA enrollment during a log-in': [
    'api/oidc-enrollment.test.ts > an identity whose policy requires a code enrolls in MFA during its log-in, which then continues',
  ],
  'a refresh preserves the audience, scopes, amr, session and time of the log-in': [
    'api/oidc.test.ts > OIDC tokens > belong to the same session after a refresh, and become invalid with that session',
    `${refresh}using a refresh token of an active session at two controllers at the same time writes nothing, and opens no second session`,
    `${refresh}a refresh token is refused if the request has %s`,
    `${refresh}a scope that a client omitted in one refresh cannot be requested in a later refresh`,
  ],
  'a token exchange grants no more than the exchanged token allows': [
    `${refresh}an access token cannot be exchanged for a refresh token`,
    `${refresh}an access token from a token exchange expires no later than the original token, even after several exchanges`,
    `${refresh}a refresh token of an identity > works at each controller until the identity logs out`,
  ],
  'a policy that requires a TOTP code makes tokens without a second factor invalid': [
    `${refresh}a refresh token of an identity > is refused without the second factor that the identity has enrolled since the log-in`,
  ],
  'tokens are bound only to the certificate of the log-in': [
    `${refresh}a token of a client that presented a certificate at its log-in > is not bound to the certificate if the client logged in by password`,
  ],
  'a certificate that is requested during a log-in, and the tokens that are bound to it': [
    `${keys}the tokens of an OIDC client that requested a certificate during its log-in > are useless without the certificate, at every endpoint where they are presented`,
    `${keys}the tokens of an OIDC client that requested a certificate during its log-in > are also bound to a certificate that was requested in the first step of a log-in with a second factor`,
    `${keys}the tokens of an OIDC client that requested a certificate during its log-in > are also valid with the certificate of the log-in, if the client logged in with a certificate`,
    `${keys}a certificate request in an OIDC log-in > results in a certificate for the identity and the session, even if the request contains other names`,
    `${keys}a certificate request in an OIDC log-in > fails when the code is redeemed if no certificate can be signed for it, and then leaves no session`,
  ],
  'a certificate for another key at a refresh or exchange; unbound tokens stay unbound': [
    `${keys}the tokens of an OIDC client that requested a certificate during its log-in > are valid, after a refresh, only with the key that was sent in that refresh`,
    `${keys}the tokens of an OIDC client that requested a certificate during its log-in > can be exchanged with the certificate, and the new tokens are bound to another key if requested`,
    `${keys}a certificate request in an OIDC log-in > is ignored in a refresh of tokens that are not bound to a key, and the new tokens are not bound either`,
  ],
  'each challenge for session tokens, access tokens and external JWTs': [
    `${sessions}the challenge of a refused request > names both kinds of tokens if the request has no token`,
    `${sessions}the challenge of a refused request > reports an access token that is malformed or has no session`,
    `${sessions}the challenge of a refused request > reports an access token that has expired`,
    `${sessions}the challenge of a refused request > is absent if the operation does not require a session`,
    'api/external-jwt/log-in.test.ts > a log-in by an external JWT > is refused for a JWT %s; the challenge says only expired, missing or invalid, and the audit entry contains the reason',
    'api/external-jwt/second-factor.test.ts > a session whose policy requires an external JWT > names the required signer in its challenge if the JWT is missing, invalid or expired',
  ],
  'error statuses; temporary failures are not OAuth errors': [
    'api/oidc.test.ts > an OIDC authorization request > is refused with the parameter %s = %s',
    'attacks/oidc/floods.test.ts > temporary failures are not reported as OAuth errors, because clients would then log in again',
    'api/oidc.test.ts > OIDC tokens > are refused by the userinfo endpoint once their session has ended',
  ],
  'discovery and issuers by host and port': [
    'api/oidc.test.ts > discovery uses the requested host as issuer, and the keys endpoint publishes an EC key for signatures',
    'api/oidc.test.ts > an OIDC authorization request > gets the response 404 at a host name that the controller does not have',
    `${authorization}a controller as an OIDC provider > does not serve the host name %s`,
    `${authorization}a controller as an OIDC provider > includes its issuer in each response of a log-in, before the code`,
  ],
  'the current session: its id is stable, and it expires with its access token': [
    `${sessions}a session shows the expiry of its access token, and the time when the session started`,
  ],
  'tokens in exchange for a TOTP code': [
    `${sessions}the exchange of a TOTP code for tokens > succeeds for a valid code in an OIDC session; if the code is repeated, the response contains the first time of issue again`,
    `${sessions}the exchange of a TOTP code for tokens > is refused if the identity has no second factor`,
  ],
  'revocations: types, effect on REST and refresh, later sessions': [
    `${refresh}a refresh token of an identity > becomes invalid when a revocation of the type %s is created`,
    `${refresh}a refresh token of an identity > becomes invalid when an administrator disables the identity, and stays invalid once the identity is enabled again`,
    `${refresh}a refresh token of an identity > becomes invalid when an administrator deletes the identity or its session`,
  ],
  'the next certificate of a client: the session requests it, and continues with it': [
    'api/oidc-certificates.test.ts > a client that an administrator asks to extend its certificate for %s > sees the request in its session, and keeps this session with the extended certificate',
  ],
  'certificates of the session, and its config types': [
    'api/oidc-certificates.test.ts > an OIDC session gets session certificates, each followed by the certificates of its issuers',
    'api/oidc-certificates.test.ts > an OIDC session has the config types that its client requested, by name or id',
    'router/edge/bearer-sessions.test.ts > A client with an access token is admitted > if it presents a certificate that names its identity, and the token is bound to no certificate',
  ],
  'OIDC is announced in addition to the REST log-in, whose sessions continue': [
    'api/meta.test.ts > OIDC is announced and served once the feature level shows that every member supports it',
    'api/meta.test.ts > if OIDC is disabled, it is neither announced nor served, and the REST log-in still works',
    'api/enrollment/certificates.test.ts > a log-in by certificate > needs no body, and stores client details from a body; repeated details write no new revision of the identity',
  ],
  'a token that replaces another token at a router': [
    'router/edge/bearer-sessions.test.ts > An access token that replaces a client’s earlier token > keeps all channels of its session open after the earlier token expires',
    'router/edge/bearer-sessions.test.ts > An access token that replaces a client’s earlier token > is refused, and the channel is closed, if the token does not belong to the session',
  ],
  'posture reports through routers, evaluated again after each change': [
    'api/oidc-posture.test.ts > an OIDC client > can request a service session before it reports posture, and can dial after it has reported posture to its router',
    'api/oidc-posture.test.ts > an OIDC client > loses its service session when its device reports to the router that a check fails',
    'api/oidc-posture.test.ts > a router that evaluates posture > prevents the end of its client’s service session until the device reports a change of posture to a controller',
    'attacks/oidc/posture-at-a-router.test.ts > a router that claims to evaluate posture > is not trusted about an MFA check, which passes only after a controller has verified a code',
    'router/edge/client-postures.test.ts > a client’s posture report > reaches the controller before the controller evaluates the client’s next request',
    'router/edge/client-postures.test.ts > a client’s posture report > is sent again to a controller after it reconnects',
  ],
  'channels at a router close when their session is revoked; later log-ins remain valid': [
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when its session is revoked',
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when earlier tokens of its identity are revoked',
    'attacks/access-token-at-a-router.test.ts > A client that is connected with an access token > is disconnected when its identity is disabled',
  ],
}

test.each(Object.entries(rows))('%s: each test that is listed as proof exists', (_row, proofs) => {
  expect(proofs.length).toBeGreaterThan(0)
  expect(withoutTest(proofs)).toEqual([])
})
