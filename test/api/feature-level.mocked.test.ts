import { create, toBinary } from '@bufbuild/protobuf'
import { expect, test, vi } from 'vitest'
import { CommandKind, CommandSchema, FeatureLevelRaiseSchema } from '../../proto/gen/command_pb.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import { management } from './support/caller.ts'
import { NEXT_LEVEL } from '../support/next-fields.ts'
import { controllerForFile } from './support/for-file.ts'

// Simulates the next release in a cluster at the previous level: services have more fields.
vi.mock(import('../../src/ports/feature-level.ts'), async (original) => ({
  ...(await original()),
  FEATURE_LEVEL: 4 as 3,
}))
vi.mock(import('../../src/entities/kinds/service.ts'), async (original) => {
  const { withNextFields } = await import('../support/next-fields.ts')
  const module = await original()
  const { service: known } = module
  return { ...module, service: withNextFields(known) }
})

const { controller, root } = await controllerForFile()
const services = `${management}/services`

function raise(): void {
  const payload = toBinary(
    FeatureLevelRaiseSchema,
    create(FeatureLevelRaiseSchema, { level: NEXT_LEVEL }),
  )
  const kind = CommandKind.FEATURE_LEVEL_RAISE
  controller.cluster.apply(
    toBinary(
      CommandSchema,
      create(CommandSchema, {
        kind,
        level: 1,
        payload,
        actor: createSystemActor({ name: 'test' }),
      }),
    ),
  )
}

test('a field of a higher feature level is ignored in every body until the feature level is raised', async () => {
  const body = { name: 'one', encryptionRequired: true, owner: 'harbour', weight: 3, strange: 1 }
  const made = await root.call('POST', services, body)
  expect(made.status, made.text).toBe(201)
  expect(made.body.meta?.ignoredFields).toEqual(['strange', 'owner', 'weight'])
  const { id } = made.body.data as { id: string }
  const proposal = controller.cluster.proposals.at(-1)
  expect(proposal?.level, 'any voter may apply it').toBeLessThan(NEXT_LEVEL)
  expect(Buffer.from(proposal?.payload ?? []).toString()).not.toContain('"owner"')
  for (const [method, rest] of [
    ['PUT', { name: 'two' }],
    ['PATCH', {}],
  ] as const) {
    const changed = await root.call(method, `${services}/${id}`, { ...rest, owner: 'pier' })
    expect(changed.status, changed.text).toBe(200)
    expect(changed.body.meta?.ignoredFields).toEqual(['owner'])
  }
  expect((await root.get(`${services}/${id}`)).body.data).toMatchObject({ owner: '', weight: 1 })

  raise()
  const changed = await root.call('PATCH', `${services}/${id}`, { owner: 'pier' })
  expect(changed.body.meta?.ignoredFields ?? []).toEqual([])
  expect(controller.cluster.proposals.at(-1)?.level).toBe(NEXT_LEVEL)
  expect((await root.get(`${services}/${id}`)).body.data).toMatchObject({ owner: 'pier' })
})
