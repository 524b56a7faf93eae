import { connect } from 'node:net'

const ANSWER_BYTES_MAX = 1024 * 1024
const ANSWER_MS_MAX = 3000
/** How controllers up to version 0.1 were asked at this socket: a line of JSON. */
const QUESTION = '{"verb":"health","params":{}}\n'

/**
 * The version of a controller that does not speak HTTP at its admin socket; null when it does not
 * tell.
 */
export function versionOfEarlier(socketPath: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    let text = ''
    const finish = (): void => {
      socket.destroy()
      resolve(versionIn(text))
    }
    socket.setTimeout(ANSWER_MS_MAX, finish)
    socket.on('error', finish)
    socket.on('close', finish)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\n') || text.length > ANSWER_BYTES_MAX) finish()
    })
    socket.write(QUESTION)
  })
}

function versionIn(text: string): string | null {
  try {
    const [line = ''] = text.split('\n', 1)
    const { data } = JSON.parse(line) as { readonly data?: { readonly version?: unknown } }
    const version = data?.version
    return typeof version === 'string' && /^[\w.+-]{1,64}$/.test(version) ? version : null
  } catch {
    return null
  }
}
