import workerUrl from './layout-worker.ts?worker&url'

export interface LayoutRequest {
  readonly nodes: readonly string[]
  readonly links: readonly (readonly [string, string])[]
}

export type NodePositions = readonly (readonly [string, number, number])[]

const SPREAD = 60

/** Initial position, derived from the id, so that the layout is the same each time. */
export function initialNodePosition(id: string, at: number): { x: number; y: number } {
  let hash = 2_166_136_261
  for (const character of id) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619)
  const angle = ((hash >>> 0) / 2 ** 32) * 2 * Math.PI
  const radius = SPREAD * Math.sqrt(at + 1)
  return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) }
}

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

export async function computeLayout(
  request: LayoutRequest,
  signal: AbortSignal,
): Promise<NodePositions> {
  const worker = new Worker(ownScripts?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module' })
  signal.addEventListener('abort', () => worker.terminate())
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<NodePositions>) => resolve(data)
      worker.onerror = (event) => reject(new Error(event.message))
      worker.postMessage(request)
    })
  } finally {
    worker.terminate()
  }
}
