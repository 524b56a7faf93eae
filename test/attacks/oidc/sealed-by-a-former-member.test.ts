import { createHash, randomUUID } from 'node:crypto'

import { create, toBinary } from '@bufbuild/protobuf'
import { beforeEach, describe, expect, test } from 'vitest'

import { CommandKind, SecretRotateSchema } from '../../../proto/gen/command_pb.ts'
import {
  type EncryptedFlowContents,
  FlowStateEncryption,
  type FlowEncryptionPurpose,
} from '../../../src/auth/oidc/flow-state-encryption.ts'
import type { TokenKey } from '../../../src/ports/token-keys.ts'
import { management } from '../../api/support/caller.ts'
import { admin } from '../../api/support/controller.ts'
import { redirectUri } from '../../api/support/oidc.ts'
import { anySystem } from '../../support/commands.ts'
import { password, twoControllers } from './support.ts'

// The attack: the disk of a removed controller contains the cluster key, which encrypts the
// statement that somebody has logged in.

const two = await twoControllers()
const { controller, root, newClient, newPerson } = two
const MINUTE_MS = 60_000

/** The keys on the disk of the removed controller. */
let stolen: readonly TokenKey[] = []
beforeEach(async () => {
  controller.keys.rotate(null)
  stolen = controller.keys.clusterKeys()
  await root.logIn(admin)
})

function seal<P extends FlowEncryptionPurpose>(
  purpose: P,
  contents: EncryptedFlowContents[P],
): Promise<string> {
  const keys = { clusterKeys: () => stolen, refresh: () => Promise.resolve() }
  return new FlowStateEncryption({ ...controller, keys }).seal(purpose, contents, MINUTE_MS)
}

const verifier = 'v'.repeat(43)

function flowOf(fields: object = {}) {
  return {
    clientId: 'native',
    scopes: ['openid', 'offline_access'],
    challenge: createHash('sha256').update(verifier).digest('base64url'),
    redirectUri,
    state: '',
    nonce: '',
    configTypes: [],
    issuer: 'https://localhost:1280/oidc',
    sessionId: randomUUID(),
    ...fields,
  }
}

async function forgedLogIn() {
  const { id: identityId } = await newPerson()
  await root.call('PATCH', `${management}/identities/${identityId}`, { isAdmin: true })
  const flow = flowOf()
  const nothingElse = { authenticatorId: '', authenticatorRevision: 0, certificate: null }
  const proof = { identityId, ...nothingElse, token: null, about: {}, certificateRequest: '' }
  return { flow, proof }
}

async function redeem(code: string) {
  const { status, json } = await newClient().send('POST', '/oidc/oauth/token', {
    grant_type: 'authorization_code',
    client_id: 'native',
    redirect_uri: redirectUri,
    code_verifier: verifier,
    code,
  })
  return [status, json['error']]
}

const refusedGrant = [400, 'invalid_grant']

test('a code that is encrypted with the current key is redeemed, which proves that the key causes the refusals in the other tests', async () => {
  expect(await redeem(await seal('code', await forgedLogIn()))).toEqual([200, undefined])
})

describe.each([
  [
    'after the key was rotated, within the overlap of session tokens',
    () => controller.keys.rotate(controller.clock.nowMs() + 30 * MINUTE_MS),
  ],
  [
    'before the key is rotated',
    () => controller.keys.set(stolen.map((key) => ({ ...key, isExposed: true }))),
  ],
])('A value that a removed controller encrypted (%s)', (_when, remove) => {
  test('is not accepted as a code', async () => {
    const code = await seal('code', await forgedLogIn())
    remove()
    expect(await redeem(code)).toEqual(refusedGrant)
  })

  test('is not accepted as a completed log-in', async () => {
    const id = await seal('progress', await forgedLogIn())
    remove()
    const { status } = await newClient().send('GET', `/oidc/authorize/callback?id=${id}`)
    expect(status).toBe(400)
  })

  test('is not accepted as the state of a log-in', async () => {
    const id = await seal('request', flowOf())
    const { username } = await newPerson()
    remove()
    const form = { id, username, password }
    const { status } = await newClient().send('POST', '/oidc/login/password', form)
    expect(status).toBe(401)
  })

  test('is not accepted as a device code', async () => {
    const endsAtMs = controller.clock.nowMs() + MINUTE_MS
    const ofDevice = { flow: flowOf({ isOfDevice: true }), userCode: 'ABCDEFGH', endsAtMs }
    const code = await seal('device', ofDevice)
    remove()
    const { status, json } = await newClient().send('POST', '/oidc/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      client_id: 'native',
      device_code: code,
    })
    expect([status, json['error']]).toEqual(refusedGrant)
  })
})

test('a code that a controller decrypted before a key rotation opens no session after the rotation', async () => {
  const code = await seal('code', await forgedLogIn())
  const { cluster } = controller
  const { propose } = cluster
  cluster.propose = async (input) => {
    if (input.kind === CommandKind.SESSION_CREATE) {
      const message = create(SecretRotateSchema, { name: 'clusterKey', version: 1 })
      const payload = toBinary(SecretRotateSchema, message)
      await propose.call(cluster, { kind: CommandKind.SECRET_ROTATE, payload, actor: anySystem })
    }
    return await propose.call(cluster, input)
  }
  try {
    expect(await redeem(code)).toEqual(refusedGrant)
  } finally {
    cluster.propose = propose
  }
})
