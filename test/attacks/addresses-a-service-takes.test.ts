import { expect, test } from 'vitest'

import { allowsNamespaces, runInNamespace } from '../support/network-namespace.ts'

// The attack: the writer of a service intercepts foreign addresses on the hosts of its users,
// another host uses addresses that only local programs may use, or a route outlives its service.
// The tests are in addresses-a-service-takes.namespaced.ts, because they change the routes of their
// host.

test.runIf(allowsNamespaces())(
  'a tunneled service cannot make a host intercept any addresses except the service’s own',
  async () => {
    const file = 'test/attacks/addresses-a-service-takes.namespaced.ts'
    expect(await runInNamespace(file)).toMatch(/Tests +[0-9]+ passed/)
  },
)
