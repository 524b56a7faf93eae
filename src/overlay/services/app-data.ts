import { parseJsonOrNull } from '../../lib/text/json-value.ts'
import { DialFailure } from '../circuits/circuit-endpoint.ts'
import { serviceLimits } from './limits.ts'
import { dialErrorCodes } from '../../channel/messages/dial-error.ts'

/**
 * Parameters of a connection, which the client of a service sends to the host of the service; null
 * for a parameter that the client did not send.
 */
export interface AppData {
  readonly protocol: string | null
  readonly hostname: string | null
  readonly address: string | null
  readonly port: string | null
  readonly sourceAddress: string | null
  readonly connectionType: string | null
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * @throws {DialFailure} if the data is not a JSON object, or one of these members is not a string.
 */
export function readAppData(bytes: Uint8Array | undefined): AppData {
  const value = bytes === undefined || bytes.length === 0 ? {} : objectOf(bytes)
  const text = (key: string): string | null => {
    const found = Object.hasOwn(value, key) ? value[key] : undefined
    if (found === undefined) return null
    if (typeof found !== 'string') throw refused(`${key} is no text`)
    return found
  }
  return {
    protocol: text('dst_protocol'),
    hostname: text('dst_hostname'),
    address: text('dst_ip'),
    port: text('dst_port'),
    sourceAddress: text('source_addr'),
    connectionType: text('connType'),
  }
}

function objectOf(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  const { appDataBytesMax } = serviceLimits
  // @guard targets-of-a-tunnel--bytes
  if (bytes.length > appDataBytesMax) throw refused(`it is longer than ${appDataBytesMax} bytes`)
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw refused('it is not UTF-8')
  }
  const value = parseJsonOrNull(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw refused('it is no JSON object')
  }
  return value as Readonly<Record<string, unknown>>
}

function refused(reason: string): DialFailure {
  return new DialFailure(dialErrorCodes.rejected, `application data of the client: ${reason}`)
}

/** Connection parameters for the host of a service, by their names in the JSON object. */
export interface WireAppData {
  readonly dst_protocol: string
  readonly dst_ip: string
  readonly dst_port: string
  readonly dst_hostname?: string
  readonly src_protocol?: string
  readonly src_ip?: string
  readonly src_port?: string
  readonly source_addr?: string
}

/** Encodes the parameters; omits empty ones. */
export function appDataBytes(data: WireAppData): Uint8Array {
  const value = Object.fromEntries(Object.entries(data).filter(([, text]) => text !== ''))
  return new TextEncoder().encode(JSON.stringify(value))
}
