import { routerProgramLimits } from '../limits.ts'
import type { HealthProbe } from './host-config.ts'
import { connectStream } from './target-connection.ts'

/** @returns whether it passes. @throws {Error} when nothing answers in time. */
export async function runProbe({ target, timeoutMs }: HealthProbe): Promise<boolean> {
  const signal = AbortSignal.timeout(timeoutMs)
  if (target.kind === 'port') {
    const socket = await connectStream(target, signal, null)
    socket.destroy()
    return true
  }
  const { url, method, body, expectStatus, expectInBody } = target
  const init = { method, signal, redirect: 'manual' as const }
  const response = await fetch(url, body === null ? init : { ...init, body })
  const isExpected = response.status === expectStatus
  if (expectInBody === null || !isExpected) {
    await response.body?.cancel()
    return isExpected
  }
  return (await beginningOf(response)).includes(expectInBody)
}

async function beginningOf(response: Response): Promise<string> {
  const { hostProbeBodyBytesMax } = routerProgramLimits
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true })
    if (text.length >= hostProbeBodyBytesMax) break
  }
  return text
}
