import { describe, expect, test } from 'vitest'
import { postureCheck, type PostureCheck } from '../../src/entities/kinds/posture-check.ts'
import { clientMfaTimes } from '../../src/posture/factor-evaluation.ts'
import {
  expectedAndActualValues,
  passesPostureCheck,
} from '../../src/posture/posture-evaluation.ts'
import type { Posture, ProcessReport, StoredFactor } from '../../src/ports/posture.ts'

const zeros = Object.fromEntries(
  Object.entries(postureCheck.fields).map(([name, field]) => [name, field.zero]),
)
const base = { id: 'c1', name: 'c1', createdAt: 1, updatedAt: 1, revision: 1, tags: {} }
const check = (fields: object): PostureCheck =>
  ({ ...zeros, ...base, ...fields }) as unknown as PostureCheck

const nothingReported: Posture = { os: null, domain: null, mac: null, processes: [] }
const told = (parts: Partial<Posture>): Posture => ({ ...nothingReported, ...parts })
const at = { checkId: 'c1', atMs: 5 }
const process = (fields: Partial<ProcessReport>): ProcessReport => ({
  ...at,
  path: '/agent',
  isRunning: true,
  hash: '',
  signerFingerprints: [],
  ...fields,
})
const running = (...processes: ProcessReport[]): Posture => told({ processes })

describe('An operating system check', () => {
  const windows = check({
    typeId: 'OS',
    operatingSystems: [
      { type: 'Windows', versions: ['>=10.0.0 <11.0.0', '12.x'] },
      { type: 'Linux', versions: [] },
    ],
  })
  const os = (type: string, version: string): Posture =>
    told({ os: { ...at, type, version, build: '' } })

  test.each([
    ['passes', 'windows', '10.0.19045'],
    ['passes', 'Windows', '12.4.0'],
    ['fails', 'Windows', '11.0.0'],
    ['fails', 'Windows', '10.0'],
    ['fails', 'WindowsServer', '10.0.0'],
    ['passes', 'LINUX', 'whatever'],
    ['fails', 'macOS', '14.0.0'],
  ])('%s for a device with the operating system %s %s', (result, type, version) => {
    expect(passesPostureCheck(windows, os(type, version))).toBe(result === 'passes')
  })
})

describe('a domain check', () => {
  const domains = check({ typeId: 'DOMAIN', domains: ['Corp.Test', 'lab.test'] })
  test.each([
    ['passes', 'corp.test'],
    ['passes', 'LAB.TEST'],
    ['fails', 'test'],
    ['fails', ''],
  ])('%s for a device in the domain %j', (result, domain) => {
    const posture = told({ domain: { ...at, domain } })
    expect(passesPostureCheck(domains, posture)).toBe(result === 'passes')
  })
})

test('a MAC address check passes if the device has any of the addresses in the check', () => {
  const mac = check({ typeId: 'MAC', macAddresses: ['001b44113ab7', 'aabbccddeeff'] })
  const addresses = (...all: string[]): Posture => told({ mac: { ...at, addresses: all } })
  expect(passesPostureCheck(mac, addresses('112233445566', 'aabbccddeeff'))).toBe(true)
  expect(passesPostureCheck(mac, addresses('112233445566'))).toBe(false)
  expect(passesPostureCheck(mac, addresses())).toBe(false)
})

describe('a process check', () => {
  const wanted = { osType: 'Linux', path: '/agent', hashes: [] as string[], signerFingerprint: '' }
  const of = (fields: object): PostureCheck =>
    check({ typeId: 'PROCESS', process: { ...wanted, ...fields } })

  test('passes if the process is running and the check requires nothing else', () => {
    expect(passesPostureCheck(of({}), running(process({})))).toBe(true)
    expect(passesPostureCheck(of({}), running(process({ isRunning: false })))).toBe(false)
  })

  test('passes only if the process has one of the hashes and the signer in the check', () => {
    const strict = of({ hashes: ['ab', 'cd'], signerFingerprint: 'ef' })
    const good = { hash: 'cd', signerFingerprints: ['01', 'ef'] }
    expect(passesPostureCheck(strict, running(process(good)))).toBe(true)
    expect(passesPostureCheck(strict, running(process({ ...good, hash: '' })))).toBe(false)
    expect(passesPostureCheck(strict, running(process({ ...good, hash: 'ff' })))).toBe(false)
    expect(passesPostureCheck(strict, running(process({ ...good, signerFingerprints: [] })))).toBe(
      false,
    )
  })

  test('compares only the hexadecimal digits of hashes and signers', () => {
    const strict = of({ hashes: ['AB:CD'], signerFingerprint: 'EF 01\n' })
    const good = { hash: 'abcd', signerFingerprints: ['ef01'] }
    expect(passesPostureCheck(strict, running(process(good)))).toBe(true)
    expect(passesPostureCheck(strict, running(process({ ...good, hash: 'abce' })))).toBe(false)
  })

  test('never passes because of an empty hash or signer, or one without hexadecimal digits', () => {
    const nothing = { hash: '', signerFingerprints: [''] }
    const unreadable = of({ hashes: ['?'] })
    expect(passesPostureCheck(unreadable, running(process(nothing)))).toBe(false)
    const unsigned = of({ signerFingerprint: '?' })
    expect(passesPostureCheck(unsigned, running(process(nothing)))).toBe(false)
  })

  test('uses the last report that contains the ID of the check', () => {
    const first = process({ path: '/a' })
    const last = process({ path: '/b', isRunning: false })
    expect(passesPostureCheck(of({}), running(first, last))).toBe(false)
    expect(passesPostureCheck(of({}), running(last, first))).toBe(true)
  })

  test('uses the last report about the process path if no report contains the ID of the check, because clients report a path once for all checks', () => {
    expect(passesPostureCheck(of({}), running(process({ checkId: 'other' })))).toBe(true)
    expect(passesPostureCheck(of({}), running(process({ checkId: 'other', path: '/AGENT' })))).toBe(
      false,
    )
  })
})

describe('a check of several processes', () => {
  const processes = [
    { osType: 'Linux', path: '/a', hashes: ['AA:BB'], signerFingerprints: [] },
    { osType: 'Linux', path: '/b', hashes: [], signerFingerprints: ['CC', 'DD'] },
  ]
  const of = (semantic: string): PostureCheck =>
    check({ typeId: 'PROCESS_MULTI', semantic, processes })
  const a = process({ path: '/a', hash: 'aabb' })
  const b = process({ path: '/b', signerFingerprints: ['dd'] })

  test('requires all processes or any of them, depending on its semantic, and compares them by path', () => {
    expect(passesPostureCheck(of('AllOf'), running(a, b))).toBe(true)
    expect(passesPostureCheck(of('AllOf'), running(a))).toBe(false)
    expect(passesPostureCheck(of('AnyOf'), running(a))).toBe(true)
    expect(passesPostureCheck(of('AnyOf'), running(process({ path: '/a', hash: 'ff' })))).toBe(
      false,
    )
  })
})

describe('an MFA check', () => {
  const nowMs = 10_000_000
  const minutes = (count: number): number => count * 60_000
  const shown = (fields: Partial<StoredFactor>): Posture => {
    const nothing = { passedAtMs: null, wokenAtMs: null, unlockedAtMs: null }
    return { ...nothingReported, factor: { ...nothing, nowMs, isLegacyClient: false, ...fields } }
  }
  const mfa = (fields: object): PostureCheck =>
    check({
      typeId: 'MFA',
      timeoutSeconds: -1,
      promptOnWake: false,
      promptOnUnlock: false,
      ignoreLegacyEndpoints: false,
      ...fields,
    })

  test('passes only in a session in which a code was given: a report from the device does not suffice', () => {
    expect(passesPostureCheck(mfa({}), running(process({})))).toBe(false)
    expect(passesPostureCheck(mfa({}), shown({}))).toBe(false)
    expect(passesPostureCheck(mfa({}), shown({ passedAtMs: 1 }))).toBe(true)
  })

  test('passes after a code until the timeout, and again after another code', () => {
    const timed = mfa({ timeoutSeconds: 600 })
    const given = (agoMs: number) => shown({ passedAtMs: nowMs - agoMs })
    expect(passesPostureCheck(timed, given(minutes(10) - 1))).toBe(true)
    expect(passesPostureCheck(timed, given(minutes(10)))).toBe(false)
    expect(clientMfaTimes(timed, given(minutes(4)).factor)).toEqual({
      timeout: 600,
      timeoutRemaining: 360,
    })
    expect(clientMfaTimes(timed, given(minutes(11)).factor)).toMatchObject({
      timeoutRemaining: 0,
    })
    expect(clientMfaTimes(timed, shown({}).factor)).toMatchObject({ timeoutRemaining: 0 })
    expect(clientMfaTimes(mfa({}), shown({}).factor)).toEqual({
      timeout: -1,
      timeoutRemaining: -1,
    })
  })

  test.each([
    ['promptOnWake', 'wokenAtMs', 'unlockedAtMs'],
    ['promptOnUnlock', 'unlockedAtMs', 'wokenAtMs'],
  ] as const)(
    'with %s passes for five minutes after the event, and then requires a code',
    (prompt, at, other) => {
      const prompted = mfa({ [prompt]: true, timeoutSeconds: 3600 })
      const passedAtMs = nowMs - minutes(30)
      const woken = (agoMs: number) => shown({ passedAtMs, [at]: nowMs - agoMs })
      expect(passesPostureCheck(prompted, shown({ passedAtMs }))).toBe(true)
      expect(passesPostureCheck(prompted, shown({ passedAtMs, [other]: nowMs - minutes(6) }))).toBe(
        true,
      )
      expect(passesPostureCheck(prompted, woken(minutes(31)))).toBe(true)
      expect(passesPostureCheck(prompted, woken(minutes(5) - 1))).toBe(true)
      expect(passesPostureCheck(prompted, woken(minutes(5)))).toBe(false)
      expect(passesPostureCheck(mfa({}), woken(minutes(6)))).toBe(true)
      expect(clientMfaTimes(prompted, woken(minutes(2)).factor)).toMatchObject({
        timeoutRemaining: 180,
      })
      expect(expectedAndActualValues(prompted, woken(minutes(6)))).toMatchObject({
        actualValue: { passedMfa: true, timedOut: false },
        criteria: { passedMfaAt: new Date(passedAtMs).toISOString() },
      })
    },
  )

  test('hides the timeout from clients that do not support it, and still enforces it', () => {
    const timed = mfa({ timeoutSeconds: 600, ignoreLegacyEndpoints: true })
    const late = shown({ passedAtMs: nowMs - minutes(11), isLegacyClient: true })
    expect(clientMfaTimes(timed, late.factor)).toEqual({ timeout: -1, timeoutRemaining: -1 })
    expect(passesPostureCheck(timed, late)).toBe(false)
  })
})

test.each([
  ['OS', { operatingSystems: [{ type: 'Linux', versions: [] }] }],
  ['DOMAIN', { domains: [''] }],
  ['MAC', { macAddresses: ['001b44113ab7'] }],
  ['PROCESS', { process: { osType: 'Linux', path: '', hashes: [], signerFingerprint: '' } }],
  [
    'PROCESS_MULTI',
    {
      semantic: 'AnyOf',
      processes: [{ osType: 'Linux', path: '', hashes: [], signerFingerprints: [] }],
    },
  ],
  ['MFA', {}],
])('a check of the type %s fails without a report', (typeId, fields) => {
  const one = check({ typeId, ...fields })
  expect(passesPostureCheck(one, nothingReported)).toBe(false)
  expect(Object.keys(expectedAndActualValues(one, nothingReported))).toEqual(
    expect.arrayContaining(['actualValue', 'expectedValue']),
  )
})
