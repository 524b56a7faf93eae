import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { checkCertificateChain, parseCertificates } from '../../src/pki/certificate.ts'
import { freePortBlock } from '../support/ports.ts'
import { flotilla } from '../support/program.ts'
import { isRunning } from './support/client.ts'
import { linesOf, run } from './support/page.ts'

// Goal: an operator who follows docs/operate/own-pki.md word for word runs a cluster whose
// certificate authorities are created with openssl alone.

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'flotilla-pki-'))
})
afterEach(() => {
  for (const name of ['ctrl1', 'ctrl2', 'router']) {
    const path = join(dir, name, 'pid')
    const pid = existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0
    if (pid > 0 && isRunning(pid)) process.kill(pid, 'SIGKILL')
  }
  rmSync(dir, { recursive: true, force: true, maxRetries: 10 })
})

const file = (name: string): string => readFileSync(join(dir, name), 'utf8')

test('the commands of docs/operate/own-pki.md work when pasted in order', async () => {
  const lines = linesOf('operate/own-pki.md', await freePortBlock(2))
  const { code, output } = await run(`PATH='${dirname(flotilla)}':$PATH\n${lines}`, dir)
  expect(code, `the page needs curl and openssl 3.\n${output}`).toBe(0)

  expect(output).toContain('chain ........ ok: ')
  expect(output).toContain('ctrl2 is prepared; it joins when started')
  expect(output).toMatch(/^laptop\.pem: OK$/m)
  expect(output).toMatch(/^router\/cert\.pem: OK$/m)
  // The new key arrived before its certificate: the controller refused the pair, and continued to
  // serve the previous one.
  expect(output).toContain('privkey.pem: the private key does not belong to the certificate')
  expect(output.match(/"apiVersions"/g)).toHaveLength(3)

  const root = parseCertificates(file('company/root.pem'))
  const authorities = ['ctrl1/cert.pem', 'ctrl2/cert.pem', 'laptop.pem', 'router/cert.pem'].map(
    (name) => {
      const chain = parseCertificates(file(name))
      checkCertificateChain(chain, root, Date.now())
      return chain[0].native.issuer
    },
  )
  const [controllers, signer] = ['controllers', 'signer'].map((n) => `O=Example\nCN=Example ${n}`)
  expect(authorities).toEqual([controllers, controllers, signer, signer])
  expect(file('laptop-ca.pem')).toContain(root[0].pem)
  expect(existsSync(join(dir, 'ctrl1/pki')), 'no root authority of Flotilla').toBe(false)
})
