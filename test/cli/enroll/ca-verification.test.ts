import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { CertificateWithKey } from '../../../src/pki/authority/authority.ts'
import { writeSecretFile } from '../../../src/pki/secret-file.ts'
import { newCa } from '../../support/authorities.ts'
import { runHere } from '../run-here.ts'
import type { Finished } from '../support.ts'
import { EnrollingController } from './support.ts'

// Goal: the holder of a CA's key proves possession without revealing the key. Method: the commands
// against a real listener.

let cluster: EnrollingController
let folder = ''
beforeAll(async () => {
  cluster = await EnrollingController.open()
  folder = mkdtempSync(join(tmpdir(), 'flotilla-ca-'))
  writeSecretFile(at('session'), `${cluster.token}\n`)
  writeFileSync(at('ca.pem'), cluster.controller.authorities.anchorsPem())
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await cluster.close()
})

const at = (name: string): string => join(folder, name)
const where = (): string[] => [
  '--url',
  cluster.origin,
  '--ca',
  at('ca.pem'),
  '--session-file',
  at('session'),
]
function keyFiles({ certificatePem, privateKeyPem }: CertificateWithKey): string[] {
  writeFileSync(at('plant.pem'), certificatePem)
  writeSecretFile(at('plant.key'), privateKeyPem)
  return ['--ca-cert', at('plant.pem'), '--ca-key', at('plant.key')]
}
const verify = (id: string, ...rest: string[]): Promise<Finished> =>
  runHere(['ca', 'verify', id, ...rest, ...where()])

test('ca verify signs the verification token with the CA key and verifies the CA; a repeated command changes nothing', async () => {
  const { id, key } = await cluster.newCa('plant')
  const flags = keyFiles(key)
  expect(await verify(id, ...flags)).toMatchObject({ code: 0, stdout: 'plant is verified\n' })
  expect(await cluster.ask('GET', `/cas/${id}`)).toMatchObject({ isVerified: true })
  const again = await verify(id, ...flags)
  expect(again).toMatchObject({ code: 0, stdout: 'plant is verified already\n' })
  const json = await verify(id, ...flags, '--json')
  expect(JSON.parse(json.stdout)).toEqual({ id, name: 'plant', isVerified: true })
})

test('ca sign-verification creates a certificate with which the API verifies the CA, so that the CA key can stay offline', async () => {
  const { id, key } = await cluster.newCa('offline')
  const { verificationToken } = await cluster.ask('GET', `/cas/${id}`)
  const words = ['ca', 'sign-verification', '--token', String(verificationToken)]
  const done = await runHere([...words, '--out', at('proof.pem'), ...keyFiles(key)])
  expect([done.code, done.stderr]).toEqual([0, ''])
  const proof = readFileSync(at('proof.pem'), 'utf8')
  await cluster.ask('POST', `/cas/${id}/verify`, proof, 'text/plain')
  expect(await cluster.ask('GET', `/cas/${id}`)).toMatchObject({ isVerified: true })
})

test('ca verify reports files that do not match the CA in one sentence, and an unknown CA as not found', async () => {
  const { id, key } = await cluster.newCa('mill')
  const other = await newCa('other', Date.now())
  for (const [files, sentence] of [
    [other, /registered with another certificate/],
    [{ ...key, privateKeyPem: other.privateKeyPem }, /does not belong/],
  ] as const) {
    const done = await verify(id, ...keyFiles(files))
    expect(done.stderr).toMatch(sentence)
    expect([done.code, done.stderr.trimEnd().split('\n').length]).toEqual([1, 1])
  }
  const nobody = await verify('nobody', ...keyFiles(key))
  expect([nobody.code, nobody.stderr]).toMatchObject([4, expect.stringContaining('not found')])
  expect(await cluster.ask('GET', `/cas/${id}`)).toMatchObject({ isVerified: false })
})
