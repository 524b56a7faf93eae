import { expect, test } from 'vitest'
import { management } from './support/caller.ts'
import { controllerForFile } from './support/for-file.ts'
import { made } from './support/network.ts'

const { root } = await controllerForFile()

async function namesOf(filter: string): Promise<string[]> {
  const reply = await root.get(
    `${management}/service-policies?filter=${encodeURIComponent(filter)}`,
  )
  expect(reply.status, reply.text).toBe(200)
  return (reply.body.data as { name: string }[]).map(({ name }) => name).sort()
}

test('a filter can use the name or the number of a policy type', async () => {
  for (const type of ['Dial', 'Bind']) {
    const body = { name: `to ${type}`, type, semantic: 'AnyOf' }
    await made(root, `${management}/service-policies`, body)
  }
  expect(await namesOf('type=1')).toEqual(['to Dial'])
  expect(await namesOf('type = "Dial"')).toEqual(['to Dial'])
  expect(await namesOf('type != 1')).toEqual(['to Bind'])
  expect(await namesOf('type in [1, 2]')).toEqual(['to Bind', 'to Dial'])
})

test('a filter with an unknown number of a policy type is refused', async () => {
  const reply = await root.get(`${management}/service-policies?filter=type%3D3`)
  expect([reply.status, reply.body.error?.code]).toEqual([400, 'INVALID_FILTER'])
})

test('an empty list has pagination with a total count of 0', async () => {
  const reply = await root.get(`${management}/configs?limit=5&offset=3`)
  expect(reply.body.data).toEqual([])
  expect(reply.body.meta?.pagination).toEqual({ limit: 5, offset: 3, totalCount: 0 })
})
