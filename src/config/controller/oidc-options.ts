import { option, section } from '../engine/schema.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../engine/units.ts'
import { boolean, integer } from '../engine/values.ts'

/** Lifetimes of tokens and sessions of OpenID Connect. */
export const oidcOptions = section('Sessions of OpenID Connect (OIDC).', {
  enabled: option(boolean(), {
    default: true,
    scope: 'cluster',
    why: 'Serve the OpenID provider. Without it clients log in by the REST log-in alone, at one controller each.',
  }),
  // Routers remember an ended session for one hour, so no token may be valid longer.
  accessTokenMs: option(integer(MINUTE_MS, 50 * MINUTE_MS), {
    default: 30 * MINUTE_MS,
    scope: 'cluster',
    why: 'Lifetime of access and id tokens. A client whose controllers are all down works for so long.',
  }),
  refreshTokenMs: option(integer(2 * MINUTE_MS, 90 * DAY_MS), {
    default: DAY_MS,
    scope: 'cluster',
    why: 'Lifetime of a refresh token. A session that is not used for so long ends.',
  }),
  sessionMaxMs: option(integer(HOUR_MS, 366 * DAY_MS), {
    default: 30 * DAY_MS,
    scope: 'cluster',
    why: 'A session ends this long after its log-in, however often it is refreshed.',
  }),
})
