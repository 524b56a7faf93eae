import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'

import {
  AccessRevokeSchema,
  CommandKind,
  FeatureLevelRaiseSchema,
} from '../../proto/gen/command_pb.ts'
import { rotateSecretsAfterRemoval } from '../../src/cluster/secrets/secret-rotation.ts'
import { FEATURE_LEVEL } from '../../src/ports/feature-level.ts'
import { CallerOf, client, management } from '../api/support/caller.ts'
import { admin } from '../api/support/controller.ts'
import { claimsOf, made, shown } from '../api/support/network.ts'
import { SecretsCluster } from '../cluster/secrets-fixture.ts'
import { anySession, anySystem } from '../support/commands.ts'
import { ownIdentity, password, twoControllers } from './oidc/support.ts'

// The attack: a compromised controller opened sessions before it was removed, and its disk has the
// token of every enrollment.

const { controller, root, newClient, newPerson } = await twoControllers()

const payload = toBinary(AccessRevokeSchema, create(AccessRevokeSchema, { nodeId: 'ctrl3' }))
const revoke = { kind: CommandKind.ACCESS_REVOKE, payload }

async function enrollmentsOf(url: string, kinds: readonly string[]): Promise<string[]> {
  const { enrollment } = await shown(root, url)
  const open = enrollment as Readonly<Record<string, { readonly token: string }>>
  return kinds.map((kind) => open[kind]?.token ?? '')
}

describe('after the removal of a compromised controller', () => {
  test('no session and no enrollment token from before the removal is valid', async () => {
    const { username } = await newPerson()
    const oidc = newClient()
    const tokens = await oidc.logIn(username, password)
    const rest = new CallerOf(controller)
    await rest.logIn({ username, password }, client)
    const make = async (kind: string, enrollment: object) => {
      const fields = { name: `to be an administrator by ${kind}`, type: 'User', isAdmin: true }
      const id = await made(root, `${management}/identities`, { ...fields, enrollment })
      return await enrollmentsOf(`${management}/identities/${id}`, [kind])
    }
    const opened = [
      ...(await make('ott', { ott: true })),
      ...(await make('updb', { updb: 'attacker' })),
    ]
    const routerId = await made(root, `${management}/edge-routers`, { name: 'to be enrolled' })
    const { enrollmentToken } = await shown(root, `${management}/edge-routers/${routerId}`)
    expect([...opened, enrollmentToken]).toEqual([
      expect.stringMatching(/./),
      expect.stringMatching(/./),
      expect.stringMatching(/./),
    ])

    const { outcome } = await controller.cluster.propose({ ...revoke, actor: anySystem })
    expect(outcome).toMatchObject({ ok: true })
    for (const kind of ['apiSession', 'session', 'enrollment'] as const) {
      expect([kind, controller.state.table(kind).rows.size]).toEqual([kind, 0])
    }

    expect(await oidc.statusAt(ownIdentity, tokens.access_token)).toBe(401)
    expect((await oidc.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant')
    expect((await rest.get(ownIdentity)).status).toBe(401)
    expect((await root.get(`${management}/identities`)).status).toBe(401)
    const { z_asid: sessionId } = claimsOf(tokens.access_token)
    expect(controller.state.get('revocation', String(sessionId))).toMatchObject({
      type: 'API_SESSION',
    })
    for (const token of [...opened, String(enrollmentToken)]) {
      const reply = await new CallerOf(controller).call('POST', `${client}/enroll?token=${token}`, {
        password: 'of the attacker, long',
      })
      expect([reply.status, reply.body.error?.code]).toEqual([400, 'INVALID_ENROLLMENT_TOKEN'])
    }
    await root.logIn(admin)
    const audit = await root.get('/fabric/v1/audit?limit=500')
    const records = audit.body.data as readonly Record<string, unknown>[]
    expect(records.find(({ action }) => action === 'access-revoke')).toMatchObject({
      entity: 'controller',
      entityId: 'ctrl3',
      also: [
        expect.stringContaining('delete enrollment '),
        expect.stringContaining('delete enrollment '),
        expect.stringContaining('delete enrollment '),
      ],
      outcome: 'done',
      reason: 'ctrl3 is reported as compromised',
    })
    expect((await root.get(`${management}/identities`)).status).toBe(200)
  })

  test('the leader deletes the controller’s admission and rotates the secrets before it ends all sessions and withdraws all open enrollments', async () => {
    const cluster = await SecretsCluster.form(['ctrl1', 'ctrl2', 'ctrl3'])
    const level = create(FeatureLevelRaiseSchema, { level: FEATURE_LEVEL })
    await cluster.propose({
      kind: CommandKind.FEATURE_LEVEL_RAISE,
      payload: toBinary(FeatureLevelRaiseSchema, level),
      actor: anySystem,
    })
    cluster.expel('ctrl3')
    const before = cluster.proposals.length
    await rotateSecretsAfterRemoval(cluster.member('ctrl1').rotation, 'ctrl3', {
      isCompromised: true,
    })
    const kinds = cluster.proposals.slice(before).map(({ kind }) => kind)
    expect(kinds).toEqual([
      CommandKind.ADMISSION_DELETE,
      CommandKind.SECRET_ROTATE,
      CommandKind.SECRET_ROTATE,
      CommandKind.ACCESS_REVOKE,
    ])
    expect(cluster.recorded.lines.join('\n')).toContain(
      'ended all API sessions and withdrew 0 open enrollments',
    )
  })
})

test('the log entry that ends all sessions is refused if a session proposes it', async () => {
  const sessionId = root.token?.split('.')[1] ?? ''
  const { identityId } = controller.state.get('apiSession', sessionId) ?? {}
  const actor = anySession({ sessionId, identityId: identityId ?? '' })
  const { outcome } = await controller.cluster.propose({ ...revoke, actor })
  expect(outcome).toMatchObject({ ok: false })
  expect((await root.get(`${management}/identities`)).status).toBe(200)
})
