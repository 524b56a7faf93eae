import { createHmac } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { until } from '../support/client.ts'
import type { TestCluster } from '../support/cluster.ts'
import { sharedCluster } from '../support/shared-cluster.ts'

// Goal: with one controller of three left, operations that need no quorum continue, and the others
// report the lost quorum in time, with a specific code.

let cluster: TestCluster
beforeAll(() => {
  cluster = sharedCluster()
})

test('a single remaining controller serves reads, refuses writes with CLUSTER_NO_LEADER, and accepts writes once the others run again', async () => {
  const survivor = await cluster.loggedIn(1)
  const created = await survivor.request('POST', '/edge/management/v1/services', {
    body: { name: 'before', encryptionRequired: false },
  })
  expect(created.status).toBe(201)
  const { id } = created.body.data as { id: string }
  cluster.kill(2)
  cluster.kill(3)

  const noLeader = await until('the survivor knows that nobody leads', async () => {
    const answer = await survivor.request('POST', '/edge/management/v1/services', {
      body: { name: `after-${performance.now()}`, encryptionRequired: false },
    })
    return answer.body.error?.code === 'CLUSTER_NO_LEADER' && answer
  })
  expect(noLeader.status).toBe(503)

  const list = await survivor.request('GET', '/edge/management/v1/services')
  expect(list.status).toBe(200)
  expect((await survivor.request('GET', `/edge/management/v1/services/${id}`)).status).toBe(200)
  expect((await survivor.request('GET', '/edge/client/v1/current-api-session')).status).toBe(200)

  const logIn = await cluster.client(1).logIn(cluster.admin)
  expect([logIn.status, logIn.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])
  const logOut = await survivor.request('DELETE', '/edge/client/v1/current-api-session')
  expect([logOut.status, logOut.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])
  const missing = await survivor.request('GET', '/edge/management/v1/services/doesNotExist')
  expect([missing.status, missing.body.error?.code]).toEqual([503, 'CLUSTER_NO_LEADER'])

  const [version, , mac] = (survivor.token ?? '').split('.')
  expect(mac).toBeDefined()
  const forged = await survivor.request('GET', '/edge/management/v1/services', {
    headers: { 'net-session': `${version}.unknownSession.${mac}` },
  })
  expect(forged.status, 'a forged token is refused immediately').toBe(401)
  const stranger = await survivor.request('GET', '/edge/management/v1/services', {
    headers: { 'net-session': await wellFormed(cluster, 'unknownSession') },
  })
  expect(stranger.status, 'a token that another controller may have issued').toBe(503)

  const pid = cluster.pid(1)
  cluster.run(2)
  cluster.run(3)
  await until('writes go on', async () => {
    const answer = await survivor.request('POST', '/edge/management/v1/services', {
      body: { name: `back-${performance.now()}`, encryptionRequired: false },
    })
    return answer.status === 201
  })
  expect(cluster.pid(1)).toBe(pid)
})

/**
 * The token that the cluster itself would issue for a session, but no controller has that session.
 */
async function wellFormed(on: TestCluster, sessionId: string): Promise<string> {
  const { version, key } = await on.clusterKey()
  const mac = createHmac('sha256', key).update(sessionId).digest('base64url')
  return `${version}.${sessionId}.${mac}`
}
