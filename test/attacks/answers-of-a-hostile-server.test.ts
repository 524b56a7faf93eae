import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { eventLine } from '../../src/cli/events/follow.ts'
import { OidcProviderClient } from '../../src/cli/client/oidc-provider-client.ts'
import { readSessionResponse } from '../../src/cli/log-in/rest-session.ts'
import { writeSecretFile } from '../../src/pki/secret-file.ts'
import type { JsonObject } from '../../src/lib/text/canonical-json.ts'
import { runHere } from '../cli/run-here.ts'
import { HostileServer } from './support/hostile-server.ts'

// The attack: a server sends responses that no controller would send, so that the program ends with
// a stack trace, prints invented content, or writes a file that it cannot read again.

let hostile: HostileServer
let home: string
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'flotilla-home-'))
  hostile = await HostileServer.open()
  mkdirSync(join(home, 'flotilla'))
  const { origin, ca } = hostile
  const logIn = { method: 'password', username: 'admin' }
  const net = {
    controllers: [origin],
    named: [origin],
    caPem: ca.certificatePem,
    logIn,
    token: 't',
  }
  const file = JSON.stringify({ current: 'net', contexts: { net } })
  writeSecretFile(join(home, 'flotilla/contexts.json'), file)
  writeFileSync(join(home, 'ca.pem'), ca.certificatePem)
  writeSecretFile(join(home, 'secret'), 'secret\n')
  writeFileSync(
    join(home, 'network.yml'),
    'version: 1\nservices:\n  - name: web\n    encryptionRequired: true\n',
  )
  writeFileSync(
    join(home, 'changes.yml'),
    '- create: service\n  name: web\n  encryptionRequired: true\n',
  )
  writeFileSync(
    join(home, 'export.json'),
    '{"services":[{"name":"web","encryptionRequired":true}]}',
  )
})
afterAll(async () => {
  await hostile.close()
  rmSync(home, { recursive: true })
})

const HUGE = 9_007_199_254_740_991
/** Data of the wrong type. */
const odd: readonly unknown[] = [
  null,
  7,
  'text',
  [],
  {},
  [null],
  [[]],
  [{}],
  [{ id: 7, name: 7 }],
  [{ id: 'a', name: {} }],
  { id: 7 },
  [{ id: 'i', isVoter: true, createdAtMs: HUGE, expiresAtMs: HUGE, usedBy: null }],
  { isScheduled: true, backups: [{ name: 'b', takenAtMs: HUGE }] },
  { ticket: 't', id: 'i', expiresAtMs: HUGE },
  { certificatePem: 'x', notAfterMs: HUGE },
  {
    certificates: [{ subject: 's', notAfterMs: HUGE }],
    issuingPem: null,
    refused: null,
    alarm: null,
  },
  { certificates: [null], issuingPem: null, refused: null, alarm: null },
  { clusterId: 'c', selfId: 's', leaderId: null, nextRisk: '', alarms: [], members: [null] },
  { clusterId: 'c', selfId: 's', leaderId: null, nextRisk: '', alarms: [], members: [{ id: 'a' }] },
  { identity: null, service: null },
]
const metas: readonly unknown[] = [
  { pagination: null },
  { pagination: { totalCount: 'many' } },
  { detachedFrom: [null] },
  { ignoredFields: {} },
]

const verbs = (): readonly (readonly string[])[] => {
  const at = ['--url', hostile.origin]
  return [
    ['cluster', 'status', ...at],
    ['cluster', 'list', ...at],
    ['cluster', 'upgrade', 'status', ...at],
    ['cluster', 'promote', 'a', ...at],
    ['cluster', 'remove', 'a', ...at],
    ['cluster', 'transfer-leadership', ...at],
    ['cluster', 'invite', ...at],
    ['cluster', 'tickets', 'list', ...at],
    ['cluster', 'backups', ...at],
    ['log', 'level', ...at],
    ['pki', 'renew', ...at],
    ['pki', 'reload', ...at],
    ['list', 'services'],
    ['get', 'service', 'web'],
    ['create', 'service', 'name=web', 'encryptionRequired=true'],
    ['update', 'service', 'web', 'tags.a=1'],
    ['delete', 'service', 'web', '--yes'],
    ['access', 'explain', 'a', 'b'],
    ['access', 'explain', 'a'],
    ['access', 'preview', '-f', join(home, 'changes.yml')],
    ['export'],
    ['apply', '-f', join(home, 'network.yml')],
    ['apply', '-f', join(home, 'network.yml'), '--prune', '--yes'],
    ['import', join(home, 'export.json')],
    ['__complete', '--', 'get', 'service', ''],
  ]
}

/** Runs a command, which must succeed or end with one line on stderr. */
async function mustEndWithASentence(words: readonly string[], said: unknown): Promise<void> {
  const done = await runHere(words, { XDG_CONFIG_HOME: home })
  const what = `${words.join(' ')}: ${JSON.stringify(said)}\n${done.stderr}`
  expect(done.stderr, what).not.toMatch(/\n\s+at |(?:Type|Range|Syntax|Reference)?Error\b/)
  expect(done.stdout, what).not.toMatch(/undefined|\[object Object\]|NaN/)
}

test(
  'commands print no stack trace and no undefined value if a server’s response is malformed',
  { timeout: 120_000 },
  async () => {
    for (const words of verbs()) {
      for (const data of odd) {
        hostile.answer = () => ({ body: { data, meta: {} } })
        await mustEndWithASentence(words, data)
      }
      for (const meta of metas) {
        hostile.answer = ({ method }) =>
          method === 'DELETE' || method === 'POST'
            ? { body: { data: { id: 'a' }, meta } }
            : { body: { data: words[0] === 'delete' ? [{ id: 'a', name: 'web' }] : [], meta: {} } }
        await mustEndWithASentence(words, meta)
      }
      for (const body of ['', 'null', '7', '[]', '<html>', '{"error":null}']) {
        hostile.answer = () => ({ body })
        await mustEndWithASentence(words, body)
        hostile.answer = () => ({ status: 400, body })
        await mustEndWithASentence(words, body)
      }
    }
  },
)

test('a cluster status with an invalid field is refused, with the path of the field', async () => {
  const member = {
    id: 'a',
    address: 'a:1',
    version: '',
    role: 'leader',
    digest: 'd',
    lastContactMs: 0,
  }
  const status: JsonObject = {
    clusterId: 'c',
    selfId: 'a',
    leaderId: 'a',
    nextRisk: 'none',
    members: [member],
    alarms: [],
  }
  const run = async (data: unknown): Promise<[number | null, string]> => {
    hostile.answer = () => ({ body: { data, meta: {} } })
    const words = ['cluster', 'status', '--url', hostile.origin]
    const { code, stderr } = await runHere(words, { XDG_CONFIG_HOME: home })
    return [code, stderr]
  }
  expect(await run(status)).toEqual([0, ''])
  const fault = (at: string): [number, string] => [
    1,
    `flotilla: ${hostile.origin}: unexpected answer ("data.${at}" is missing or malformed); is a controller of the network at this address?\n`,
  ]
  expect(await run({ ...status, members: [member, { ...member, digest: 7 }] })).toEqual(
    fault('members.1.digest'),
  )
  expect(await run({ ...status, alarms: [null] })).toEqual(fault('alarms.0'))
  expect(await run({ ...status, term: 'passes' })).toEqual([0, ''])
})

test('a session token that cannot be sent in a header opens no session', async () => {
  for (const token of ['two\r\nx-header: lines', 'ä', '', 'a'.repeat(70_000)]) {
    expect(() => readSessionResponse({ token, identity: { name: 'a' }, authQueries: [] })).toThrow(
      'no session',
    )
    const tokens = { access_token: token, token_type: 'Bearer', refresh_token: 'r', expires_in: 1 }
    hostile.answer = ({ path }) => {
      if (!path.endsWith('/openid-configuration')) return { body: tokens }
      const issuer = `${hostile.origin}/oidc`
      return { body: { issuer, token_endpoint: `${issuer}/token` } }
    }
    const provider = await OidcProviderClient.discover(hostile.origin, {
      caPem: hostile.ca.certificatePem,
    })
    await expect(provider.refresh('r')).rejects.toThrow(/no tokens|access_token/)
  }
})

test('an event with values of unexpected types is printed on one line', () => {
  for (const value of [null, 7, 'text', [], {}, { author: null }, { author: 7 }]) {
    const event = { namespace: 'n', metadata: value, finalState: value, initialState: value }
    expect(eventLine(event).split('\n')).toHaveLength(1)
  }
})
