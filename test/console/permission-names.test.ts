import { expect, test } from 'vitest'

import { permissionNames } from '../../src/console/pages/records/permission-names.ts'
import { grantablePermissions } from '../../src/lib/permissions.ts'

// The console imports nothing of the controller, so it derives the permissions from its own kinds.

test('the form of an identity offers exactly the permissions that a controller accepts', () => {
  expect(permissionNames).toEqual(grantablePermissions)
})
