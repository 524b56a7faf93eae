import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'

import type { StockNetwork } from './network.ts'

/**
 * Creates an end-to-end encrypted service `echo`, for identities that host it and others that use
 * it.
 * @param routers the role of the router for each role of identities.
 */
export async function offerEcho(
  network: StockNetwork,
  routers: Readonly<Record<'hosts' | 'users', string>>,
): Promise<void> {
  await network.post('services', {
    name: 'echo',
    encryptionRequired: true,
    roleAttributes: ['echo'],
  })
  for (const [name, type, role] of [
    ['b', 'Bind', '#hosts'],
    ['d', 'Dial', '#users'],
  ] as const) {
    await network.post('service-policies', {
      name,
      type,
      semantic: 'AnyOf',
      serviceRoles: ['#echo'],
      identityRoles: [role],
    })
  }
  await network.post('service-edge-router-policies', {
    name: 's',
    semantic: 'AnyOf',
    serviceRoles: ['#all'],
    edgeRouterRoles: ['#all'],
  })
  for (const [role, router] of Object.entries(routers)) {
    await network.post('edge-router-policies', {
      name: role,
      semantic: 'AnyOf',
      identityRoles: [`#${role}`],
      edgeRouterRoles: [`#${router}`],
    })
  }
}

/**
 * A program in the background that writes its output directly to a file: an echo server writes two
 * lines per KB.
 */
export function inBackground(binary: string, args: readonly string[], log: string): ChildProcess {
  const said = openSync(log, 'w')
  const child = spawn(binary, args, { stdio: ['pipe', said, said] })
  closeSync(said)
  return child
}

export interface CameBack {
  readonly bytes: Buffer
  /** The last lines of the client's log. */
  readonly errors: string
}

/**
 * A client that receives nothing for this time has failed, regardless of the amount of data that it
 * still expects.
 */
const STALLED_AFTER_MS = 20_000

/**
 * The answer to an OpenZiti client that sends `bytes` over a separate connection.
 * @param onBack called while the connection is open.
 */
export async function sendAndReceive(
  binary: string,
  identityFile: string,
  bytes: Buffer,
  onBack: () => Promise<void> = () => Promise.resolve(),
): Promise<CameBack> {
  const child = spawn(binary, ['demo', 'zcat', '-i', identityFile, 'ziti:echo'])
  const parts: Buffer[] = []
  let received = 0
  let deadline = performance.now() + STALLED_AFTER_MS
  child.stdout.on('data', (chunk: Buffer) => {
    parts.push(chunk)
    received += chunk.length
    deadline = performance.now() + STALLED_AFTER_MS
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  child.stdin.on('error', () => undefined)
  child.stdin.write(bytes)
  while (received < bytes.length && child.exitCode === null && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await onBack()
  child.stdin.end()
  child.kill()
  if (child.exitCode === null) await once(child, 'exit')
  return { bytes: Buffer.concat(parts), errors: errors.split('\n').slice(-6).join('\n    ') }
}
