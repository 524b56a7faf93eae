import { expect, test } from 'vitest'

import { client, management } from '../../api/support/caller.ts'
import { admin } from '../../api/support/controller.ts'
import { controllerForFile } from '../../api/support/for-file.ts'
import { claimsOf, made } from '../../api/support/network.ts'
import { OidcClient } from '../../api/support/oidc.ts'
import { raiseLevel } from '../../api/support/raise-level.ts'

// The attack: a thief continues to use a token after an operator has revoked it by its ID.

const { controller, root } = await controllerForFile()
await raiseLevel(controller)

/** Statuses of the uses of an access token. */
async function statusesBy(token: string): Promise<readonly number[]> {
  const oidc = new OidcClient(controller)
  return [
    await oidc.statusAt(`${client}/current-api-session`, token),
    await oidc.statusAt('/oidc/userinfo', token),
    (await oidc.exchange(token, 'access_token', 'access_token')).status,
  ]
}

test('a token that is revoked by its ID is refused, even if a controller had verified it before', async () => {
  for (const isKnown of [true, false]) {
    const oidc = new OidcClient(controller)
    const { access_token: token } = await oidc.logIn(admin.username, admin.password)
    if (isKnown) expect(await statusesBy(token)).toEqual([200, 200, 200])
    const [id, expiresAt] = [claimsOf(token)['jti'], '2100-01-01T00:00:00Z']
    await made(root, `${management}/revocations`, { id, type: 'JTI', expiresAt })
    expect(await statusesBy(token), `known: ${isKnown}`).toEqual([401, 401, 400])
  }
})
