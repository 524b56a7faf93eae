import { spawn } from 'node:child_process'
import { join } from 'node:path'

export { layOut } from '../support/lay-out.ts'
import type { QuickstartPlan } from '../../src/cli/quickstart/plan.ts'
import type { CertificateWithKey } from '../../src/pki/authority/authority.ts'
import { formedSecret } from '../support/formed-secret.ts'
import { flotilla } from '../support/program.ts'

export { flotilla }

export interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the program as a person does, and waits for its end. */
export function run(words: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return new Promise((done, reject) => {
    const child = spawn(flotilla, words, {
      // No stored session of this machine's user is used.
      env: { ...process.env, XDG_CONFIG_HOME: '/nonexistent', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    child.once('error', reject)
    child.once('close', (code) => done({ code, stdout, stderr }))
  })
}
/** The authority that signs leaf certificates in a newly created cluster. */
export async function issuingAuthorityOf(plan: QuickstartPlan): Promise<CertificateWithKey> {
  const folder = join(plan.dir, 'ctrl1')
  const { secret, certificatePem } = await formedSecret(folder, 'ctrl1', 'issuingAuthority')
  return { certificatePem, privateKeyPem: Buffer.from(secret).toString() }
}
