import {
  defineIgnoredSection,
  defineKeyedSections,
  defineOption,
  defineOptionalSection,
  type ConfigValues,
} from '../engine/schema.ts'
import { DAY_MS } from '../engine/units.ts'
import {
  booleanType,
  integerType,
  millisecondsType,
  optionalType,
  pathType,
  textType,
} from '../engine/values.ts'

const SECOND_MS = 1000
const BYTES_MAX = 1024 * 1024 * 1024

/** Timeouts of listeners at a `wss:` address, ms. */
export interface WebSocketTimeouts {
  readonly readTimeout: number
  readonly handshakeTimeout: number
  readonly pingInterval: number
  readonly pongTimeout: number
}

const timeoutNames = ['readTimeout', 'handshakeTimeout', 'pingInterval', 'pongTimeout'] as const

/** Default values, equal to OpenZiti's. */
const defaults: WebSocketTimeouts = {
  readTimeout: 5 * SECOND_MS,
  handshakeTimeout: 10 * SECOND_MS,
  pingInterval: 54 * SECOND_MS,
  pongTimeout: 60 * SECOND_MS,
}

/** A timeout in whole seconds, as in OpenZiti. */
function webSocketTimeout(name: keyof WebSocketTimeouts, secondsMax: number, why: string) {
  return defineOption(optionalType(integerType(1, secondsMax)), {
    default: null,
    why: `ws, wss: ${why}, in seconds; ${defaults[name] / SECOND_MS} when absent.`,
  })
}

const inCertificates =
  'a listener presents the certificate of identity; add others to identity.alt_server_certs'
const inBuffers = 'buffers have a fixed size'

/**
 * Keys of `transport`: settings for WebSockets, and for protocols that this router does not
 * support.
 */
export const transportSection = defineKeyedSections(
  8,
  'Settings of the protocols below the channel, in one section for each protocol. `ws` and `wss` apply to edge listeners at a `wss:` address; a key in `wss` takes precedence. Sections for other protocols have no effect.',
  {
    readTimeout: webSocketTimeout(
      'readTimeout',
      3600,
      'maximum time until the request that opens a web socket has arrived',
    ),
    handshakeTimeout: webSocketTimeout(
      'handshakeTimeout',
      3600,
      'maximum time from the TLS handshake of a connection to the end of the TLS handshake within its web socket',
    ),
    pingInterval: webSocketTimeout('pingInterval', 3600, 'interval of pings to each client'),
    pongTimeout: webSocketTimeout(
      'pongTimeout',
      86_400,
      'time without any data from the client after which a web socket is closed',
    ),
    writeTimeout: defineIgnoredSection(
      'writeTimeout of the listener options limits how long one message may take',
    ),
    idleTimeout: defineIgnoredSection(
      'a connection without a web socket is closed after its first request',
    ),
    enableCompression: defineIgnoredSection(
      'the content of web sockets is encrypted, so the router does not compress it',
    ),
    readBufferSize: defineIgnoredSection(inBuffers),
    writeBufferSize: defineIgnoredSection(inBuffers),
    identity: defineIgnoredSection(inCertificates),
    server_cert: defineIgnoredSection(inCertificates),
    server_key: defineIgnoredSection(inCertificates),
    cert: defineIgnoredSection(inCertificates),
    key: defineIgnoredSection(inCertificates),
    profile_version: defineOption(optionalType(integerType(0, 1_000_000)), {
      default: null,
      why: 'Version of the profile.',
      hasEffect: false,
    }),
    tx_portal_min_sz: defineOption(optionalType(integerType(1, BYTES_MAX)), {
      default: null,
      why: 'Minimum bytes in flight.',
      hasEffect: false,
    }),
    tx_portal_max_sz: defineOption(optionalType(integerType(1, BYTES_MAX)), {
      default: null,
      why: 'Maximum bytes in flight.',
      hasEffect: false,
    }),
    instrument: {
      ...defineOptionalSection('Measurements of the protocol.', {
        name: defineOption(optionalType(textType()), {
          default: null,
          why: 'Kind of measurement.',
        }),
        path: defineOption(optionalType(pathType()), {
          default: null,
          why: 'File of the measurements.',
        }),
        snapshot_ms: defineOption(optionalType(millisecondsType(1, DAY_MS)), {
          default: null,
          why: 'Interval of measurements.',
        }),
        enabled: defineOption(booleanType(), {
          default: false,
          why: 'Whether measurements are written.',
        }),
      }),
      hasEffect: false as const,
    },
    maxBytesPerSecond: defineOption(optionalType(integerType(1, Number.MAX_SAFE_INTEGER)), {
      default: null,
      why: 'dtls: maximum bytes per second.',
      hasEffect: false,
    }),
  },
)

type Transport = Readonly<Record<string, ConfigValues<typeof transportSection.fields>>>

/** Accepts both names: OpenZiti reads the section `wss`, but its generator writes `ws`. */
const webSocketNames = ['wss', 'ws'] as const

export function webSocketTimeouts(transport: Transport): WebSocketTimeouts {
  const sections = webSocketNames.flatMap((name) => transport[name] ?? [])
  const chosen = timeoutNames.map((name) => {
    const given = sections.map((section) => section[name]).find((value) => value !== null)
    return [name, given === undefined || given === null ? defaults[name] : given * SECOND_MS]
  })
  return Object.fromEntries(chosen) as WebSocketTimeouts
}

/** Names of the sections that have no effect in this version. */
export function transportsWithoutEffect(transport: Transport): readonly string[] {
  return Object.keys(transport).filter((name) => !webSocketNames.some((known) => known === name))
}
