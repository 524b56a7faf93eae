import { parseControllerConfig } from '../../../src/config/controller/load.ts'
import { type ControllerConfig, controllerOptions } from '../../../src/config/controller/options.ts'
import { type Environment, environmentName } from '../../../src/config/engine/environment.ts'
import { formatConfigFault } from '../../../src/config/engine/fault.ts'
import type { FuzzSubject } from '../engine/fuzz.ts'

export const FILE = '/etc/flotilla/config.yml'
/** Configuration with everything that a controller needs to start. */
export const GOOD = `id: ctrl1
data: data
trustDomain: test.example
identity:
  cert: pki/cert.pem
  key: pki/key.pem
  ca: /srv/ca.pem
cluster:
  bind: 127.0.0.1:1480
  advertise: 127.0.0.1:1480
web:
  - bind: 127.0.0.1:1280
    advertise: localhost:1280
`

export function load(text: string, environment: Environment = {}): ControllerConfig {
  const loaded = parseControllerConfig(FILE, text, environment)
  if (!loaded.ok) throw new Error(loaded.faults.map(formatConfigFault).join('\n'))
  return loaded.config
}

export function faultsOf(text: string, environment: Environment = {}): string[] {
  const loaded = parseControllerConfig(FILE, text, environment)
  return loaded.ok ? [] : loaded.faults.map(formatConfigFault)
}

/** Keys whose environment variables the tests use. */
const keys = ['id', 'raft.tickMs', 'web[0].apis', 'api.refusedSignerNetworks', 'backup.hook']

export const controllerSubject: FuzzSubject<ControllerConfig> = {
  fields: controllerOptions,
  needed: 'id data trustDomain identity cert key ca cluster web bind advertise'.split(' '),
  variables: keys.map((key) => environmentName('FLOTILLA_', key)),
  parse: (text, environment) => parseControllerConfig(FILE, text, environment),
  check({ id, web, identity }) {
    if (id === '' || web.length === 0) throw new Error('accepted without what is required')
    if (!identity.cert.startsWith('/')) throw new Error('accepted a path that is relative')
  },
}
