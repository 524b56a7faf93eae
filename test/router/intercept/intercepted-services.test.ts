import { expect, test } from 'vitest'

import { allowsNamespaces, runInNamespace } from '../../support/network-namespace.ts'

// Goal: programs of a host reach services by their addresses and names, and nothing stays when a
// service goes. Method: the tests of intercepted-services.namespaced.ts, as they change the routes
// of their host.

test.runIf(allowsNamespaces())(
  'a tunneler intercepts services (this test runs other tests in a separate network namespace)',
  async () => {
    const file = 'test/router/intercept/intercepted-services.namespaced.ts'
    expect(await runInNamespace(file)).toMatch(/Tests +[0-9]+ passed/)
  },
)
