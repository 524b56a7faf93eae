import { create, toBinary } from '@bufbuild/protobuf'
import { parse } from 'yaml'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { CaEnrollSchema, CommandKind, TokenEnrollSchema } from '../../proto/gen/command_pb.ts'
import { eventLine } from '../../src/cli/events/follow.ts'
import { createSystemActor } from '../../src/ports/actor.ts'
import { createJsonLogger, HumanReadableLines } from '../../src/cli/terminal/log-lines.ts'
import { formatTable, printLine } from '../../src/cli/terminal/output.ts'
import { promptLine } from '../../src/cli/terminal/prompt.ts'
import { raiseLevel } from '../api/support/raise-level.ts'
import { Administrator } from '../cli/client/support.ts'
import { PassThrough } from 'node:stream'

// The attack: somebody who may choose a name uses characters that overwrite an administrator's
// terminal output, or a line break, so that a script that reads names deletes another record.

const controls =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u
const evil = (name: string): string =>
  `${name}\u001b]0;owned\u0007\u001b[2J\r\u009b31m\u202egnp\u2066\u200f\nvictim\u007f`

let person: Administrator
const ids: Record<string, string> = {}
beforeAll(async () => {
  person = await Administrator.loggedIn(1)
  const { cluster } = person
  const made = async (path: string, body: Record<string, unknown>): Promise<string> =>
    (ids[path] = String((await cluster.ask('POST', `/${path}`, body))['id']))
  await cluster.ask('POST', '/identities', { name: 'victim', type: 'Device', isAdmin: false })
  const roleAttributes = [evil('attribute')]
  await made('identities', {
    name: evil('identity'),
    type: 'Device',
    isAdmin: false,
    roleAttributes,
    tags: { [evil('key')]: evil('value'), direction: 'a\u202eb' },
  })
  await made('services', { name: evil('service'), encryptionRequired: true, roleAttributes })
  await made('config-types', {
    name: evil('type'),
    schema: { type: 'object', description: evil('text') },
  })
  await made('service-policies', {
    name: evil('policy'),
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#${evil('attribute')}`],
    serviceRoles: [`@${ids['services']}`],
  })
  await made('edge-routers', { name: evil('router') })
})
afterAll(() => person.close())

const kinds = ['identities', 'services', 'config-types', 'service-policies', 'edge-routers']

/**
 * Everything that a command prints; fails if it contains a character that a terminal interprets.
 */
async function printed(...words: string[]): Promise<string> {
  const { stdout, stderr } = await person.run(...words)
  expect(controls.exec(stdout + stderr), words.join(' ')).toBeNull()
  return stdout
}

describe('Names with control characters that were stored by a release that accepted them', () => {
  test('cannot move the cursor in a table, a document or an export', async () => {
    for (const kind of kinds) {
      await printed('list', kind)
      const [row] = JSON.parse(
        await printed('list', kind, '--filter', `id = "${ids[kind]}"`, '-o', 'json'),
      ) as [{ name: string; _links: unknown }]
      expect(row.name).toBe(evil(row.name.split('\u001b')[0] ?? ''))
      const shown = await printed('get', kind, ids[kind] ?? '', '-o', 'yaml')
      const { _links: _, ...fields } = row
      expect(parse(shown)).toEqual(fields)
    }
    const exported = parse(await printed('export')) as { services: [{ name: string }] }
    expect(exported.services[0].name).toBe(evil('service'))
    await printed('export', '-o', 'json')
  })

  test('are replaced by IDs in a list with one name per line, so that a script finds the same record', async () => {
    for (const kind of kinds) {
      const names = (await printed('list', kind, '-o', 'name')).trimEnd().split('\n')
      expect(names).toContain(ids[kind])
      if (kind === 'identities') expect(names.filter((name) => name === 'victim')).toHaveLength(1)
    }
    expect(await printed('get', 'identity', ids['identities'] ?? '', '-o', 'name')).toBe(
      `${ids['identities']}\n`,
    )
  })

  test('do not add a line to an explanation of access', async () => {
    const identity = ids['identities'] ?? ''
    const service = ids['services'] ?? ''
    for (const words of [[identity, service], [identity], ['--service', service]]) {
      const text = await printed('access', 'explain', ...words)
      expect(text.split('\n').filter((line) => line.startsWith('victim?'))).toEqual([])
    }
  })

  test('cannot move the cursor in refusals, prompts and results', async () => {
    const id = ids['identities'] ?? ''
    await printed('update', 'identity', id, `nosuch=${evil('value')}`)
    await printed('delete', 'identity', evil('unknown'), '--yes')
    await printed('list', evil('kind'))
    expect((await person.run('delete', 'identity', id)).stderr).toBe(
      `flotilla: no terminal to confirm the deletion of identity ${id}; add --yes\n`,
    )
    const policy = ids['service-policies'] ?? ''
    expect(await printed('delete', 'service-policy', policy, '--yes')).toBe(
      `deleted service policy ${policy}\n`,
    )
    const [input, output] = [new PassThrough(), new PassThrough()]
    input.end('no\n')
    await promptLine(`Delete ${evil('record')}?`, { input, output })
    expect(controls.exec(String(output.read()))).toBeNull()
  })

  test('cannot move the cursor in tables, events and logs', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    printLine(evil('line'))
    expect(write.mock.calls).toEqual([['line?]0;owned??[2J??31m?gnp??\nvictim?\n']])
    write.mockRestore()
    expect(formatTable(['title'], [[evil('cell')]]).split('\n')).toHaveLength(2)
    const event = { timestamp: 't', namespace: evil('n'), [evil('key')]: evil('value') }
    const lines = [eventLine(event)]
    const sink = { write: (line: string) => void lines.push(line.trimEnd()) }
    const fields = { [evil('key')]: evil('value') }
    createJsonLogger(sink, { level: 'info', base: {} }).info(fields, evil('message'))
    createJsonLogger(new HumanReadableLines(sink, false), { level: 'info', base: {} }).info(
      fields,
      evil('message'),
    )
    expect(lines).toHaveLength(3)
    for (const line of lines) expect(line).not.toMatch(/[\n]/)
    for (const line of lines) expect(controls.exec(line)).toBeNull()
  })
})

describe('When the feature level refuses names with control characters', () => {
  beforeAll(async () => {
    await raiseLevel(person.cluster.controller)
  })

  const reason =
    /must not contain control characters or controls of the text direction, found U\+001B/

  async function refusal(method: string, path: string, body: unknown): Promise<unknown> {
    const { listener, token } = person.cluster
    const reply = await listener.call({ method, path: `/edge/management/v1${path}`, token, body })
    const { error } = reply.body as unknown as { error: { cause?: unknown } }
    return { status: reply.status, cause: error.cause }
  }
  const refused = (field: string) => ({
    status: 400,
    cause: expect.objectContaining({
      field,
      reason: expect.stringMatching(reason) as unknown,
    }) as unknown,
  })

  test('a record cannot be created with, or renamed to, such a name', async () => {
    expect(
      await refusal('POST', '/services', { name: evil('new'), encryptionRequired: true }),
    ).toEqual(refused('name'))
    expect(await refusal('PATCH', `/services/${ids['services']}`, { name: evil('other') })).toEqual(
      refused('name'),
    )
    const ca = await person.cluster.newCa('a ca')
    expect(await refusal('PATCH', `/cas/${ca.id}`, { identityNameFormat: evil('[caId]') })).toEqual(
      refused('identityNameFormat'),
    )
  })

  test('a record that already has such a name can be changed, renamed and deleted', async () => {
    const { cluster } = person
    const path = `/services/${ids['services']}`
    await cluster.ask('PATCH', path, { tags: { a: 1 } })
    await cluster.ask('PUT', path, { name: evil('service'), encryptionRequired: true })
    expect((await cluster.ask('GET', path))['name']).toBe(evil('service'))
    await cluster.ask('PATCH', path, { name: 'renamed' })
    await cluster.ask('DELETE', path)
    await cluster.ask('DELETE', `/config-types/${ids['config-types']}`)
  })

  test('an enrollment with such a name by certificate or token is refused', async () => {
    const { cluster } = person.cluster.controller
    const actor = createSystemActor({ name: 'test' })
    const { id: caId } = await person.cluster.verifiedCa('another ca')
    const certificate = { pem: 'PEM', fingerprint: 'print', publicKeyPrint: 'key', caId }
    const byCertificate = create(CaEnrollSchema, {
      caId,
      identityId: 'by-certificate',
      authenticatorId: 'a1',
      name: evil('holder'),
      certificate,
    })
    const fault = {
      code: 'COULD_NOT_VALIDATE',
      fault: { field: 'name', reason: expect.stringMatching(reason) as unknown },
    }
    await expect(
      cluster.propose({
        kind: CommandKind.CA_ENROLL,
        payload: toBinary(CaEnrollSchema, byCertificate),
        actor,
      }),
    ).resolves.toMatchObject({ outcome: { ok: false, ...fault } })
    const { id: signerId } = await person.cluster.ask('POST', '/external-jwt-signers', {
      name: 'provider',
      issuer: 'https://provider.test',
      audience: 'net',
      enabled: true,
      jwksEndpoint: 'https://provider.test/keys',
      claimsProperty: 'sub',
      useExternalId: true,
      enrollToTokenEnabled: true,
    })
    const byToken = create(TokenEnrollSchema, {
      signerId: String(signerId),
      identityId: 'by-token',
      externalId: 'x',
      name: evil('holder'),
    })
    await expect(
      cluster.propose({
        kind: CommandKind.TOKEN_ENROLL,
        payload: toBinary(TokenEnrollSchema, byToken),
        actor,
      }),
    ).resolves.toMatchObject({ outcome: { ok: false, ...fault } })
  })
})
