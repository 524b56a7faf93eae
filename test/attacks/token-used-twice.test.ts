import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { CommandKind, EntityWriteSchema } from '../../proto/gen/command_pb.ts'
import { canonicalJson } from '../../src/lib/text/canonical-json.ts'
import { generatePrivateKeyPem } from '../../src/pki/authority/certificate-request.ts'
import { client, management } from '../api/support/caller.ts'
import { type Detail, listed, made, shown } from '../api/support/network.ts'
import type { TlsReply } from '../api/support/tls.ts'
import { commandData } from '../support/commands.ts'
import {
  attackedByCertificates,
  csrOf,
  dataOf,
  heldTogether,
  PEM,
  refusal,
  routerRequests,
} from './support/certificates.ts'

// The attack: somebody who has seen the token of another person presents it to a second controller
// at the same time, after it was refreshed, when it expires, or after it was used.

const attacked = await attackedByCertificates()
const { controller, listener, root, newToken } = attacked

async function bring(token: string): Promise<TlsReply> {
  const path = `${client}/enroll?method=ott&token=${token}`
  return listener.call({ path, body: await csrOf(generatePrivateKeyPem()), headers: PEM })
}

const credentialsOf = (identityId: string) =>
  listed(root, `${management}/identities/${identityId}/authenticators`)

test('an enrollment token in two simultaneous requests enrolls only one key', async () => {
  const { identityId, token } = await newToken({ ott: true })
  heldTogether(controller.issuer, 'identity', 2)
  const replies = await Promise.all([bring(token), bring(token)])
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 400])
  expect(await credentialsOf(identityId)).toHaveLength(1)
})

test('an enrollment token that is refreshed between its verification and its use enrolls no identity', async () => {
  const { identityId, id, token } = await newToken({ ott: true })
  const expiresAt = new Date(attacked.nowMs() + 60_000).toISOString()
  heldTogether(controller.issuer, 'identity', 1, () =>
    root.call('POST', `${management}/enrollments/${id}/refresh`, { expiresAt }),
  )
  expect((await bring(token)).status).toBe(400)
  expect(await credentialsOf(identityId)).toHaveLength(0)
})

test('an enrollment token that expires between its verification and its use enrolls no identity', async () => {
  const { identityId, token } = await newToken({ ott: true })
  heldTogether(controller.issuer, 'identity', 1, () => controller.clock.advance(4 * 60 * 60_000))
  expect((await bring(token)).status).toBe(400)
  root.token = controller.openSession('admin-id')
  expect(await credentialsOf(identityId)).toHaveLength(0)
})

test('an enrollment token that was used does not return its certificate to a caller with another key', async () => {
  const { identityId, token } = await newToken({ ott: true })
  dataOf(await bring(token))
  const credentials = await credentialsOf(identityId)
  const again = await bring(token)
  expect(again).toMatchObject(refusal(400, 'INVALID_ENROLLMENT_TOKEN'))
  expect(again.text).not.toContain('BEGIN CERTIFICATE')
  expect(credentials).toHaveLength(1)
  expect(await credentialsOf(identityId)).toEqual(credentials)
})

/** Creates a router. @returns its ID and enrollment token. */
async function openRouter(name: string): Promise<{ id: string; token: string }> {
  const id = await made(root, `${management}/edge-routers`, { name })
  const { enrollmentToken } = await shown(root, `${management}/edge-routers/${id}`)
  return { id, token: String(enrollmentToken) }
}

test('if a migrated router has two enrollment tokens, the second one becomes invalid when the first one is used', async () => {
  const [router, other] = [await openRouter('gate'), await openRouter('other gate')]
  const open = await listed(root, `${management}/enrollments`)
  const second = open.find(({ token }: Detail) => token === other.token)
  const message = create(EntityWriteSchema, {
    entity: 'enrollment',
    id: String(second?.['id']),
    json: new TextEncoder().encode(canonicalJson({ edgeRouterId: router.id })),
  })
  const moved = commandData(CommandKind.ENTITY_PATCH, toBinary(EntityWriteSchema, message))
  expect(controller.cluster.apply(moved).outcome).toMatchObject({ ok: true })
  const enroll = async (token: string): Promise<TlsReply> => {
    const body = await routerRequests(router.id, generatePrivateKeyPem())
    return await listener.call({ path: `${client}/enroll?method=erott&token=${token}`, body })
  }
  dataOf(await enroll(router.token))
  expect(await enroll(other.token)).toMatchObject(refusal(400, 'INVALID_ENROLLMENT_TOKEN'))
  const left = await listed(root, `${management}/enrollments`)
  expect(left.map(({ id }: Detail) => id)).not.toContain(second?.['id'])
})
