import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

// Goal: every state transition that the controller promises is proven by a test.
// Method: the table of transitions as data; each names the words that the title of its test has (with that of its
// `describe`). Transitions without such a test are named below, exactly: who writes one takes its line away.

interface Transition {
  readonly name: string
  readonly subject: string
  readonly state: string
  readonly trigger: string
  readonly condition: string
  readonly next: string
  readonly effects: string
  /** A test for each: its title has all of the words. */
  readonly proofs: readonly string[]
}

const table: readonly Transition[] = [
  {
    name: 'log-in with a second factor pending',
    subject: 'API session',
    state: 'none',
    trigger: 'authenticate with a primary credential',
    condition: 'credential valid',
    next: 'partially authenticated',
    effects: 'session token issued',
    proofs: ['log-in second factor pending partially'],
  },
  {
    name: 'log-in',
    subject: 'API session',
    state: 'none',
    trigger: 'authenticate with a primary credential',
    condition: 'no secondary factor required',
    next: 'fully authenticated',
    effects: 'no further interaction needed',
    proofs: ['log-in answers session token'],
  },
  {
    name: 'second factor',
    subject: 'API session',
    state: 'partially authenticated',
    trigger: 'complete MFA with a valid code, or present a valid JWT',
    condition: 'code or JWT valid',
    next: 'fully authenticated',
    effects: '',
    proofs: ['session complete code', 'session complete JWT'],
  },
  {
    name: 'end of a session',
    subject: 'API session',
    state: 'any',
    trigger: 'inactivity timeout or logout',
    condition: '',
    next: 'ended',
    effects: 'sessions tied to it are removed',
    proofs: [
      'session ends inactivity',
      'logging out ends session',
      'end of an API session takes its sessions',
    ],
  },
  {
    name: 'session ended by an administrator',
    subject: 'API session',
    state: 'any',
    trigger: 'admin deletes it',
    condition: '',
    next: 'ended',
    effects: '',
    proofs: ['administrator session ends'],
  },
  {
    name: 'MFA begun',
    subject: 'MFA enrollment',
    state: 'none',
    trigger: 'initiate MFA enrollment',
    condition: 'not already enrolled',
    next: 'created, unverified',
    effects: 'detail gives provisioningUrl and recoveryCodes',
    proofs: ['MFA begun unverified'],
  },
  {
    name: 'MFA begun twice',
    subject: 'MFA enrollment',
    state: 'completed',
    trigger: 'initiate MFA enrollment',
    condition: '',
    next: 'unchanged',
    effects: '409',
    proofs: ['MFA twice 409'],
  },
  {
    name: 'MFA verified',
    subject: 'MFA enrollment',
    state: 'unverified',
    trigger: 'verify with a time-based one-time code',
    condition: 'code valid',
    next: 'verified',
    effects: 'recovery codes viewable',
    proofs: ['MFA verified code'],
  },
  {
    name: 'MFA disabled by its holder',
    subject: 'MFA enrollment',
    state: 'verified',
    trigger: 'disable by the identity',
    condition: '',
    next: 'none',
    effects: '',
    proofs: ['MFA removed holder code'],
  },
  {
    name: 'MFA removed by an administrator',
    subject: 'MFA enrollment',
    state: 'any',
    trigger: 'admin removes MFA from an identity',
    condition: '',
    next: 'none',
    effects: '',
    proofs: ['MFA removed administrator'],
  },
  {
    name: 'recovery codes made anew',
    subject: 'MFA recovery codes',
    state: 'verified enrollment',
    trigger: 'regenerate (valid code)',
    condition: '',
    next: 'verified',
    effects: 'all previous codes replaced',
    proofs: ['recovery codes replaced'],
  },
  {
    name: 'CA created',
    subject: 'CA',
    state: 'none',
    trigger: 'create',
    condition: '',
    next: 'unverified',
    effects: 'verificationToken generated; of no use yet',
    proofs: ['create unverified verificationToken generated'],
  },
  {
    name: 'CA verified',
    subject: 'CA',
    state: 'unverified',
    trigger: 'verify',
    condition: 'certificate signed by the CA whose common name is the token',
    next: 'verified',
    effects: '',
    proofs: ['CA verified common name'],
  },
  {
    name: 'CA deleted',
    subject: 'CA',
    state: 'any',
    trigger: 'delete',
    condition: '',
    next: 'deleted',
    effects: 'its certificate authenticators are deleted',
    proofs: ['CA deleted authenticators'],
  },
  {
    name: 'client certificate extended',
    subject: 'Identity client certificate (controller-issued)',
    state: 'old certificate active',
    trigger: 'extend with CSR',
    condition: '',
    next: 'new certificate returned, old still active',
    effects: '',
    proofs: ['certificate extended old'],
  },
  {
    name: 'client certificate confirmed',
    subject: 'Identity client certificate',
    state: 'new certificate returned',
    trigger: 'extend-verify with the returned certificate',
    condition: '',
    next: 'new certificate must be used for new connections',
    effects: '',
    proofs: ['certificate extend-verify new'],
  },
  {
    name: 'router certificates extended',
    subject: 'Router certificates',
    state: 'current',
    trigger: 'extend with CSRs, using the existing valid client certificate',
    condition: '',
    next: 'new certificates returned',
    effects: 'the previous client certificate becomes invalid',
    proofs: ['router certificate extended previous invalid'],
  },
  {
    name: 'enrollment created',
    subject: 'Outstanding enrollment',
    state: 'none',
    trigger: 'create',
    condition: 'none outstanding of the same type for the identity',
    next: 'outstanding',
    effects: 'otherwise 409',
    proofs: ['no outstanding same type 409'],
  },
  {
    name: 'enrollment refreshed',
    subject: 'Outstanding enrollment',
    state: 'outstanding or expired',
    trigger: 'refresh with new expiresAt',
    condition: '',
    next: 'outstanding',
    effects: 'new JWT; the previous one is unusable',
    proofs: ['enrollment refresh JWT'],
  },
  {
    name: 'enrollment deleted',
    subject: 'Outstanding enrollment',
    state: 'outstanding',
    trigger: 'delete',
    condition: '',
    next: 'none',
    effects: '',
    proofs: ['enrollment deleted'],
  },
  {
    name: 'authenticator re-enrolled',
    subject: 'Authenticator',
    state: 'exists',
    trigger: 're-enroll with expiresAt',
    condition: '',
    next: 'authenticator deleted; enrollment created',
    effects: 'updb gives updb, cert gives ott, cert with CA gives ottca',
    proofs: ['authenticator re-enroll'],
  },
  {
    name: 'edge router re-enrolled',
    subject: 'Edge router',
    state: 'enrolled',
    trigger: 're-enroll',
    condition: '',
    next: 'certificate authentication removed; enrollment required',
    effects: 'the rest is kept; a connected router is disconnected',
    proofs: ['router re-enroll'],
  },
  {
    name: 'identity disabled',
    subject: 'Identity',
    state: 'enabled',
    trigger: 'disable with durationMinutes',
    condition: '',
    next: 'disabled',
    effects: 'sessions are refused for so long, 0: for good; disabledAt, disabledUntil',
    proofs: [
      'identity disabled minutes refused disabledUntil',
      'identity disabled 0 minutes for good',
    ],
  },
  {
    name: 'identity enabled',
    subject: 'Identity',
    state: 'disabled',
    trigger: 'clear disabled state (admin)',
    condition: '',
    next: 'enabled',
    effects: '',
    proofs: ['identity disabled enabled again logs in'],
  },
  {
    name: 'integrity run begun',
    subject: 'Data integrity run',
    state: 'idle',
    trigger: 'start check or fix',
    condition: 'no other run in progress',
    next: 'running',
    effects: '202; one run at a time',
    proofs: ['integrity one at a time'],
  },
  {
    name: 'integrity run ended',
    subject: 'Data integrity run',
    state: 'running',
    trigger: 'finishes',
    condition: '',
    next: 'idle',
    effects: 'results available',
    proofs: ['integrity results'],
  },
]

/** Transitions that no test proves yet. */
const unproven: readonly string[] = [
  'log-in with a second factor pending',
  'second factor',
  'MFA begun',
  'MFA begun twice',
  'MFA verified',
  'MFA disabled by its holder',
  'MFA removed by an administrator',
  'recovery codes made anew',
  'client certificate extended',
  'client certificate confirmed',
  'router certificates extended',
]

interface Title {
  readonly file: string
  readonly text: string
}

const root = import.meta.dirname

/** Titles of all tests, each with that of the block it stands in. */
function titles(): Title[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.test.ts') && file !== 'state-table.test.ts',
  )
  return files.flatMap((file) => {
    const source = readFileSync(join(root, file), 'utf8')
    const found: Title[] = []
    let block = ''
    for (const [, indent = '', word, quoted = ''] of source.matchAll(HEADING)) {
      const text = quoted.slice(1, -1)
      if (word === 'describe') block = text
      else found.push({ file, text: indent === '' ? text : `${block} ${text}` })
    }
    return found
  })
}

/** `test('…'`, `test.each([…])('…'`, `describe('…'` at the beginning of a line. */
const HEADING =
  /^([ ]*)(?:(?:\]\)?|\]\s*as const\))\(|(test|describe)(?:\.[a-zA-Z]+)*(?:\([^'"`\n]*\))?\(\s*)('(?:[^'\\\n]|\\.)*'|"[^"\n]*"|`[^`\n]*`)/gm

/** Each word begins one of the title; what is written in capitals is so there. */
function hasWords(title: string, words: string): boolean {
  return words
    .split(' ')
    .every((word) => new RegExp(`\\b${word}`, word === word.toUpperCase() ? '' : 'i').test(title))
}

test('every transition of the table is proven by a test, but for those that are named', () => {
  const all = titles()
  expect(all.length).toBeGreaterThan(500)
  const lacking = table
    .filter(({ proofs }) => !proofs.every((words) => all.some(({ text }) => hasWords(text, words))))
    .map(({ name }) => name)
  expect(lacking).toEqual(unproven)
})

const mission = resolve(
  process.env['FLOTILLA_SHARED'] ?? '../shared',
  'mission/controller-apis.txt',
)
test.skipIf(!existsSync(mission))('the table is that of the mission, row by row', () => {
  const text = readFileSync(mission, 'utf8')
  const begin = text.indexOf('## States and transitions')
  const rows = text
    .slice(begin, text.indexOf('\n## ', begin + 1))
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Subject'))
    .map((line) => line.split('|').map((cell) => cell.replaceAll('`', '').trim()))
  expect(rows.map((cells) => [cells[1], cells[2]])).toEqual(
    table.map(({ subject, state }) => [subject, state]),
  )
  for (const [at, { trigger, name }] of table.entries())
    expect(rows[at]?.[3], name).toContain(trigger)
})
