import workerUrl from './layout-worker.ts?worker&url'

import type { LayoutRequest, NodePositions } from './layout.ts'

interface ScriptUrlPolicy {
  createScriptURL(url: string): string
}
interface TrustedTypes {
  createPolicy(name: string, rules: ScriptUrlPolicy): ScriptUrlPolicy
}

const { trustedTypes } = globalThis as { readonly trustedTypes?: TrustedTypes }
const ownScripts = trustedTypes?.createPolicy('flotilla-worker', {
  createScriptURL: (url) => {
    if (new URL(url, location.href).origin !== location.origin)
      throw new TypeError('foreign script')
    return url
  },
})

/**
 * Started with this module, which the console loads when it is idle: the controller that serves
 * the script may be unreachable when the drawing is opened.
 */
const worker = new Worker(ownScripts?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module' })
let isBroken = false
worker.addEventListener('error', () => (isBroken = true))

/** The layout that is computed now; the worker computes one after the other. */
let current: Promise<unknown> = Promise.resolve()

/** @throws when the worker could not be started, and when the request is aborted. */
export async function computeLayout(
  request: LayoutRequest,
  signal: AbortSignal,
): Promise<NodePositions> {
  const earlier = current
  const computed = earlier.then(
    () => computeNow(request, signal),
    () => computeNow(request, signal),
  )
  current = computed
  return await computed
}

function computeNow(request: LayoutRequest, signal: AbortSignal): Promise<NodePositions> {
  signal.throwIfAborted()
  if (isBroken) return Promise.reject(new Error('the layout worker did not start'))
  return new Promise((resolve, reject) => {
    const end = new AbortController()
    const once = { signal: end.signal }
    worker.addEventListener(
      'message',
      ({ data }: MessageEvent<NodePositions>) => {
        end.abort()
        if (signal.aborted) reject(signal.reason as Error)
        else resolve(data)
      },
      once,
    )
    worker.addEventListener(
      'error',
      ({ message }) => {
        end.abort()
        reject(new Error(message))
      },
      once,
    )
    worker.postMessage(request)
  })
}
