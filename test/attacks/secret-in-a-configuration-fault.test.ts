import { expect, test } from 'vitest'

import { faultsOf as controllerFaults, GOOD } from '../config/controller/support.ts'
import { faultsOf as routerFaults, LEAST } from '../config/router/support.ts'

// The attack: more people read the logs of a service manager than its configuration. An error
// message about a value that may contain a credential must not print the credential.

const hook = '["curl", "https://user:sesame@archive.test"]'

test.each([
  [
    'a backup hook in the file',
    controllerFaults(`${GOOD}backup: {hook: ${hook}}\n`),
    'backup.hook',
  ],
  [
    'a backup hook in an environment variable',
    controllerFaults(GOOD, { FLOTILLA_BACKUP_HOOK: hook }),
    'backup.hook',
  ],
  ['the key of a router', routerFaults(LEAST.replace('r.key', '[sesame]')), 'identity.key'],
])(
  'An error about %s names the configuration key, and does not show the value',
  (_, faults, key) => {
    expect(faults).toHaveLength(1)
    expect(faults[0]).toContain(`${key}: expected`)
    expect(faults[0]).toMatch(/found another value$/)
    expect(faults.join()).not.toContain('sesame')
  },
)
