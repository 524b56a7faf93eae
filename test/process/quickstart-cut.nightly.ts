import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from './support/client.ts'
import { TestCluster } from './support/cluster.ts'

// Goal: if a quickstart is killed at any moment while it forms the cluster, running it again
// completes the cluster. Method: the test kills it as soon as the files of one step appear, and
// kills it at the next step in the same folder each time.

test('a quickstart that was killed while it formed the cluster resumes when it runs again', async () => {
  await using cluster = await TestCluster.create()
  const steps = [
    'ctrl1/.forming',
    'ctrl1/data/IDENTITY',
    'ctrl1/pid',
    'ctrl2/data/IDENTITY',
    'ctrl3/pid',
  ]
  for (const step of steps) {
    const child = cluster.beginQuickstart()
    const ended = new Promise((done) => child.once('exit', done))
    await until(`${step} is there`, () => {
      if (child.exitCode !== null) throw new Error(`quickstart ended:\n${cluster.output}`)
      return Promise.resolve(existsSync(join(cluster.folder, step)))
    })
    child.kill('SIGKILL')
    await ended
    expect(existsSync(join(cluster.folder, 'admin.json'))).toBe(false)
  }
  const own = join(cluster.folder, 'ctrl1/admin.json')
  const { password } = JSON.parse(readFileSync(own, 'utf8')) as { password: string }
  // Simulates a kill between the start of a controller and the writing of its pid file.
  await until('ctrl1 holds its folder', () =>
    Promise.resolve(existsSync(join(cluster.folder, 'ctrl1/data/lock/holder'))),
  )
  rmSync(join(cluster.folder, 'ctrl1/pid'))
  await cluster.quickstart()
  expect(cluster.admin.password).toBe(password)
  expect(existsSync(own)).toBe(false)
  for (const k of [1, 2, 3]) {
    const client = await cluster.loggedIn(k)
    const answer = await client.request('GET', '/fabric/v1/cluster/list-members')
    const members = answer.body.data as { id: string; voter: boolean }[]
    expect(members.filter(({ voter }) => voter).map(({ id }) => id)).toEqual([
      'ctrl1',
      'ctrl2',
      'ctrl3',
    ])
  }
  expect(await cluster.interrupt()).toBe(0)
})
