import { create } from '@bufbuild/protobuf'
import { expect, test } from 'vitest'

import { type SharedOptions, SharedOptionsSchema } from '../../proto/gen/soft_pb.ts'
import { Alarms } from '../../src/cluster/health/alarms.ts'
import { OptionsWatch } from '../../src/cluster/health/options-watch.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { SoftListener } from '../../src/ports/soft-state.ts'
import { RecordedLog } from './mesh-fixture.ts'

const optionsOf = (values: Readonly<Record<string, string>>): SharedOptions =>
  create(SharedOptionsSchema, {
    options: Object.entries(values).map(([name, value]) => ({ name, value })),
  })

/** A watch of two options, with the soft state topic that it reads and writes. */
function watched() {
  const alarms = new Alarms(systemClock, new RecordedLog().log)
  const published: SharedOptions[] = []
  let hear: SoftListener<SharedOptions> = () => undefined
  const own = [
    { name: 'oidc.enabled', value: 'false' },
    { name: 'raft.tickMs', value: '50' },
  ]
  const topic = {
    publish: (_key: string, value: SharedOptions) => published.push(value) > 0,
    onChange: (listener: SoftListener<SharedOptions>) => void (hear = listener),
  }
  new OptionsWatch(own, topic, alarms)
  return {
    published,
    say: (member: string, values: Readonly<Record<string, string>> | null) =>
      hear(member, 'self', values === null ? undefined : optionsOf(values)),
    texts: () => alarms.list().map(({ code, text }) => `${code}: ${text}`),
  }
}

test('a controller publishes its options', () => {
  const own = { 'oidc.enabled': 'false', 'raft.tickMs': '50' }
  expect(watched().published).toEqual([optionsOf(own)])
})

test('an alarm for each member lists the options that differ from those of this controller, and clears when they are equal', () => {
  const { say, texts } = watched()
  say('ctrl2', { 'oidc.enabled': 'true', 'raft.tickMs': '25' })
  say('ctrl3', { 'oidc.enabled': 'false', 'raft.tickMs': '50' })
  say('ctrl4', { 'oidc.enabled': 'true', 'raft.tickMs': '50' })
  const sentence = 'other values of options that must be equal on every controller'
  const remedy = 'correct one configuration and restart its controller'
  expect(texts()).toEqual([
    `OPTIONS_DIFFER: ctrl2 has ${sentence}: oidc.enabled (false here, true there), raft.tickMs (50 here, 25 there); ${remedy}`,
    `OPTIONS_DIFFER: ctrl4 has ${sentence}: oidc.enabled (false here, true there); ${remedy}`,
  ])
  say('ctrl2', { 'oidc.enabled': 'false', 'raft.tickMs': '50' })
  say('ctrl4', null)
  expect(texts()).toEqual([])
})

test('options from another release are not compared, and unprintable characters in a peer’s values are replaced', () => {
  const { say, texts } = watched()
  say('ctrl2', { 'raft.tickMs': '50', 'later.option': '1' })
  expect(texts()).toEqual([])
  say('ctrl2', { 'oidc.enabled': `\u001b[2J${'x'.repeat(10_000)}` })
  const [text = ''] = texts()
  expect(text).not.toContain('\u001b')
  expect(text.length).toBeLessThan(700)
})
