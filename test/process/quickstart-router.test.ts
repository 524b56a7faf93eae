import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: the router beside a quickstart is there when it says that it is ready, and ends with it.

let cluster: TestCluster
beforeAll(async () => {
  cluster = await TestCluster.start({ nodes: 1, routers: 1 })
})
afterAll(async () => {
  await cluster[Symbol.asyncDispose]()
})

const file = (name: string): string => join(cluster.folder, 'router1', name)
const read = (name: string): string => readFileSync(file(name), 'utf8')
const pid = (): number => Number(read('pid').trim())

async function expectOnline(): Promise<void> {
  const client = await cluster.loggedIn(1)
  await until('the router is online', async () => {
    const { body } = await client.request('GET', '/edge/management/v1/edge-routers')
    const routers = body.data as { name: string; isOnline: boolean; isVerified: boolean }[]
    return (
      routers.length === 1 &&
      routers.every((one) => one.name === 'router1' && one.isOnline && one.isVerified)
    )
  })
}

test('a router is enrolled and online, and when it is killed the quickstart tells how to start it again', async () => {
  await expectOnline()
  process.kill(pid(), 'SIGKILL')
  await until('the notice', () =>
    Promise.resolve(
      /router1 was killed[\s\S]*router run \S*router1\/config\.yml/.test(cluster.output),
    ),
  )
})

test('a quickstart that is run again starts its router by the identity that it has, and ^C ends both', async () => {
  const before = read('router1.cert')
  await cluster.interrupt()
  await cluster.quickstart()
  await expectOnline()
  expect(read('router1.cert')).toBe(before)
  const running = pid()
  expect(await cluster.interrupt()).toBe(0)
  expect(() => process.kill(running, 0)).toThrow(/ESRCH/)
  expect(existsSync(file('pid'))).toBe(false)
})
