import { seededRandom } from '../../../src/lib/random.ts'
import { newUuidv7 } from '../../../src/lib/text/uuid.ts'
import { create } from '@bufbuild/protobuf'
import { CommandKind, OriginSchema, RequestIdSchema } from '../../../proto/gen/command_pb.ts'
import { identity, type LogWriter, policy, service } from './log.ts'

/**
 * Writes a long random sequence of valid and invalid commands, which is the same for the same seed,
 * except for request IDs.
 */
export function writeRandomLog(log: LogWriter, seed: number, commands: number): void {
  const random = seededRandom(seed)
  const pick = (prefix: string): string => `${prefix}${random.integer(0, 19)}`
  const type = (): string => (random.next() < 0.5 ? 'proxy.v1' : 'router.link.v1')
  const attribute = (): string => `a${random.integer(0, 4)}`
  let sequence = 0
  const token = (): {
    readonly token: string
    readonly jwt: string
    readonly expiresAt: number
  } => {
    const expiresAt = log.timeMs + random.integer(-20_000, 60_000)
    return { token: pick('token '), jwt: 'j.w.t', expiresAt }
  }
  const input = (): object => {
    sequence += 1
    const origin = create(OriginSchema, {
      storeId: new Uint8Array(16).fill(random.integer(1, 3)),
      boot: BigInt(seed),
      sequence: BigInt(sequence),
      lowestOutstanding: BigInt(Math.max(1, sequence - 5)),
    })
    const bodyHash = new Uint8Array(32).fill(1)
    const request = create(RequestIdSchema, {
      caller: 'admin',
      id: newUuidv7(log.timeMs),
      bodyHash,
    })
    return random.next() < 0.5 ? { origin } : { origin, request }
  }
  const actions: readonly (() => unknown)[] = [
    () => log.create('service', pick('s'), service(pick('service ')), input()),
    () => log.create('service', pick('s'), service(pick('service '), [attribute()]), input()),
    () => log.create('identity', pick('i'), identity(pick('identity '), [attribute()]), input()),
    () =>
      log.create(
        'servicePolicy',
        pick('p'),
        policy(pick('policy '), [`@${pick('i')}`, `#${attribute()}`], [`#${attribute()}`], {
          type: random.next() < 0.5 ? 'Dial' : 'Bind',
        }),
        input(),
      ),
    () => log.patch('service', pick('s'), { roleAttributes: [attribute(), attribute()] }, input()),
    () => log.replace('service', pick('s'), service(pick('service ')), input()),
    () => log.patch('servicePolicy', pick('p'), { identityRoles: ['#all'] }, input()),
    () => log.delete('service', pick('s')),
    () => {
      const data = { port: random.integer(0, 9) }
      return log.create('config', pick('c'), { name: pick('config '), configTypeId: type(), data })
    },
    () => log.patch('service', pick('s'), { configs: [pick('c'), pick('c')] }, input()),
    () => log.serviceConfigs('associate', pick('i'), [[pick('s'), pick('c')]]),
    () => log.serviceConfigs('disassociate', pick('i'), [[pick('s'), pick('c')]]),
    () => log.delete('config', pick('c')),
    () => log.patch('identity', pick('i'), { isAdmin: random.next() < 0.5 }, input()),
    () => log.disable(pick('i'), random.integer(0, 2)),
    () => log.enable(pick('i')),
    () => {
      const fields = {
        identityId: pick('i'),
        method: 'updb',
        username: pick('user '),
        passwordHash: 'h',
      }
      return log.raw(CommandKind.ENTITY_CREATE, 'authenticator', pick('a'), fields)
    },
    () => log.delete('authenticator', pick('a')),
    () => log.delete('identity', pick('i')),
    () => log.logIn(pick('sess')),
    () => log.touch(pick('sess'), log.timeMs - random.integer(-100, 100)),
    () => log.logOut(pick('sess')),
    () => {
      const body = { name: pick('identity '), isTunnelerEnabled: random.next() < 0.7 }
      return log.create('edgeRouter', pick('r'), body, input())
    },
    () => {
      const body = { name: pick('identity '), isTunnelerEnabled: random.next() < 0.7 }
      return log.patch('edgeRouter', pick('r'), body, input())
    },
    () => log.delete(random.next() < 0.5 ? 'router' : 'edgeRouter', pick('r')),
    () => {
      const fields = { serviceId: pick('s'), routerId: pick('r'), address: 'a' }
      return log.raw(CommandKind.ENTITY_CREATE, 'terminator', pick('t'), fields)
    },
    () => {
      const enrollment = { ...token(), method: 'erott', edgeRouterId: pick('r') }
      return log.batch([
        [CommandKind.ENTITY_PATCH, 'edgeRouter', enrollment.edgeRouterId, { isVerified: false }],
        [CommandKind.ENTITY_CREATE, 'enrollment', pick('e'), enrollment],
      ])
    },
    () => {
      const enrollment = { ...token(), method: 'ott', identityId: pick('i') }
      return log.raw(CommandKind.ENTITY_CREATE, 'enrollment', pick('e'), enrollment)
    },
    () => {
      const id = pick('i')
      const enrollment = { ...token(), method: 'updb', username: pick('user '), identityId: id }
      return log.batch([
        [CommandKind.ENTITY_CREATE, 'identity', id, identity(pick('identity '))],
        [CommandKind.ENTITY_CREATE, 'enrollment', pick('e'), enrollment],
      ])
    },
    () => log.delete('enrollment', pick('e')),
    () => log.append('noop', new Uint8Array()),
    () => log.append('configuration', Uint8Array.of(random.integer(0, 9))),
  ]
  for (let i = 0; i < commands; i += 1) {
    log.timeMs += random.integer(0, 20_000)
    actions[random.integer(0, actions.length - 1)]?.()
  }
}
