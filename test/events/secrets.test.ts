import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

import type { KindName } from '../../src/entities/kind-records.ts'
import type { Entity } from '../../src/entities/define-entity.ts'
import { entities, entityByKind } from '../../src/entities/registry.ts'
import { EventBus } from '../../src/events/event-bus.ts'
import { eventLimits } from '../../src/events/limits.ts'
import { publishedKinds } from '../../src/events/published-records.ts'
import { LogEntryEvents } from '../../src/events/sources/log-entry-events.ts'
import { FileSink } from '../../src/events/sinks/file-sink.ts'
import { StreamSink } from '../../src/events/sinks/stream-sink.ts'
import { EVENT_NAMESPACES } from '../../src/lib/event-namespaces.ts'
import type { EntityRecord } from '../../src/lib/entity-record.ts'
import type { ChangeListener, RecordChange } from '../../src/ports/change-feed.ts'
import { client, fabric, management } from '../api/support/caller.ts'
import { controllerForFile } from '../api/support/for-file.ts'
import { turnOnMfa } from '../api/support/mfa.ts'
import { made, newIdentity, newService } from '../api/support/network.ts'
import { authorityPem } from '../api/generated/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { EventTap } from './tap.ts'

const { controller, root, sessionOf } = await controllerForFile()
const url = await controller.app.listen({ host: '127.0.0.1', port: 0 })
const dir = await mkdtemp(join(tmpdir(), 'flotilla-events-'))
afterAll(() => rm(dir, { recursive: true, force: true }))

const everything = {
  namespaces: new Set(EVENT_NAMESPACES),
  metrics: null,
  sources: null,
  entityTypes: null,
} as const

test('no secret, whether a client wrote it or the controller generated it, appears in an event stream, in an event file or on standard output', async () => {
  const path = join(dir, 'events.log')
  const file = new FileSink({
    bus: controller.events.bus,
    filter: everything,
    onFault: () => undefined,
    options: { path, bytesMax: 1e9, keep: 1, isSynced: false },
  })
  file.start()
  let stdout = ''
  const output = new StreamSink(controller.events.bus, everything, {
    isCrowded: false,
    write: (text) => void (stdout += text),
  })
  const tap = await EventTap.open(`${url}${fabric}/events`, { 'net-session': root.token ?? '' })
  await eventually(() => expect(tap.of('ready')).toHaveLength(1))

  const secrets = new Set<string>()
  const password = 'a marked password 4711'
  const identityId = await newIdentity(root, 'marked', { enrollment: { ott: true } })
  await made(root, `${management}/authenticators`, {
    method: 'updb',
    identityId,
    username: 'marked',
    password,
  })
  const log = await sessionOf('alice-id').logIn({ username: 'marked', password }, client)
  secrets.add((log.body.data as { token: string }).token).add(root.token ?? '')
  const factor = await turnOnMfa(controller, sessionOf(identityId))
  secrets.add(new URL(factor.url).searchParams.get('secret') ?? '')
  for (const code of factor.recoveryCodes) secrets.add(code)
  const serviceId = await newService(root, 'marked-service')
  const routerId = await made(root, `${management}/edge-routers`, { name: 'marked-router' })
  await made(root, `${management}/terminators`, {
    service: serviceId,
    router: routerId,
    binding: 'transport',
    address: 'tls:a:1',
    instanceSecret: Buffer.from('marked instance secret').toString('base64'),
  })
  await made(root, `${management}/cas`, {
    name: 'marked-ca',
    certPem: await authorityPem(),
    identityRoles: [],
    isAuthEnabled: true,
    isAutoCaEnrollmentEnabled: true,
    isOttCaEnrollmentEnabled: true,
  })
  await sessionOf('alice-id').logIn({ username: 'marked', password: 'a wrong password 0815' })
  for (const kind of publishedKinds) {
    for (const id of controller.machine.ids(kind)) addWithheld(secrets, kind, id)
  }
  secrets.add(password).add('a wrong password 0815')
  await root.call('DELETE', `${management}/identities/${identityId}`)
  await newService(root, 'the-last-one')
  await eventually(() => expect(tap.raw).toContain('the-last-one'))
  await file.stop()
  output.stop()

  const written = await readFile(path, 'utf8')
  expect(written).toContain('marked-service')
  expect(stdout).toContain('marked-service')
  expect(secrets.size).toBeGreaterThan(15)
  for (const text of [tap.raw, written, stdout]) {
    expect([...secrets].filter((secret) => text.includes(secret))).toEqual([])
  }
  tap.close()
})

function withheldIn({ fields }: Pick<Entity, 'fields'>): string[] {
  return Object.keys(fields).filter((name) => fields[name]?.published === 'withheld')
}

/**
 * Secrets that the system has generated, as the state stores them: tokens,
 * hashes and keys.
 */
function addWithheld(secrets: Set<string>, kind: KindName, id: string): void {
  const record = controller.machine.get(kind, id)
  for (const name of withheldIn(entityByKind[kind])) {
    const value = record?.[name]
    const text = typeof value === 'string' ? value : JSON.stringify(value ?? null)
    if (text.length > 15) secrets.add(text).add(JSON.stringify(text).slice(1, -1))
  }
}

test('no event of any kind contains a field that is marked as withheld', () => {
  const clock = { appliedIndex: () => 1, startedAtMs: 1, selfId: 'ctrl1', generation: 1 }
  const bus = new EventBus({ ...clock, limits: eventLimits })
  const followed: { kinds: readonly string[]; of: ChangeListener }[] = []
  new LogEntryEvents(bus, {
    get: () => undefined,
    follow: (kinds, of) => {
      followed.push({ kinds, of })
      return () => undefined
    },
  })
  const [follower] = followed
  const marks: string[] = []
  const changes = entities.flatMap(({ name, table, fields }): RecordChange[] => {
    if (table !== name || follower?.kinds.includes(name) !== true) return []
    // This record is a list of notices; the tests of access expiry check their events.
    if (name === 'accessEnd') return []
    const withheld = withheldIn({ fields })
    const values = Object.keys(fields).map((field) => {
      const mark = `mark-${name}-${field}`
      if (withheld.includes(field)) marks.push(mark)
      return [field, mark]
    })
    const base = { id: `${name}-1`, createdAt: 1, updatedAt: 1, revision: 1 }
    const record = { ...Object.fromEntries(values), ...base } as EntityRecord
    return [
      { kind: name, id: record.id, before: undefined, after: record },
      { kind: name, id: record.id, before: record, after: { ...record, updatedAt: 2 } },
      { kind: name, id: record.id, before: record, after: undefined },
    ]
  })
  follower?.of.onEntry(1, changes, { timeMs: 1, audit: null })
  const text = Array.from({ length: bus.ring.end }, (_, at) => bus.ring.at(at)?.text).join('\n')
  expect(marks.length).toBeGreaterThan(20)
  expect(text).toContain('mark-service-name')
  expect(marks.filter((mark) => text.includes(mark))).toEqual([])
  expect(text).not.toMatch(/mark-(sharedSecret|joinTicket|admission|passwordAttempts|mfaAttempts)/)
})
