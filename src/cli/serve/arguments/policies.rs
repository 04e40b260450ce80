//! The enforcement by policies that the arguments of `serve` ask for.

use super::{Enforcement, ServeArgs, WebhookPart};
use crate::cli::input::values::RatchetingArg;
use crate::controllers::{PolicyDuty, PolicyEnforcement, ServiceReference};
use anyhow::bail;

impl ServeArgs {
    /// Returns the enforcement by policies; `None` if this replica neither keeps nor deletes policies.
    pub(in crate::cli::serve) fn policies(&self) -> anyhow::Result<Option<PolicyEnforcement>> {
        let Some(duty) = self.policy_duty()? else { return Ok(None) };
        let mut excluded: Vec<String> = self.exclude_namespace.clone();
        excluded.push("kube-system".to_owned());
        excluded.extend(self.service.as_ref().map(|service| service.namespace.to_string()));
        excluded.sort();
        excluded.dedup();
        Ok(Some(PolicyEnforcement {
            duty,
            name_prefix: self.policy_name_prefix.clone().unwrap_or_else(|| "unions-".to_owned()),
            ratchet: self.ratcheting == RatchetingArg::Enabled,
            excluded_namespaces: excluded,
            installation: self.service.as_ref().map(ServiceReference::installation),
            owner: self.owner_cluster_role.clone(),
            entries: self.entries(),
            handover: self.handover_delay,
        }))
    }

    fn policy_duty(&self) -> anyhow::Result<Option<PolicyDuty>> {
        let registers = self.service.is_some() && self.register;
        if self.enforcement == Enforcement::Policies {
            if !self.from.is_empty() {
                bail!("--enforcement=policies keeps policies in a cluster: it cannot be used with --from");
            }
            if self.remove_policies {
                bail!(
                    "--enforcement=policies keeps the policies that --remove-policies would delete: give one of the two"
                );
            }
            return match self.webhook.unwrap_or_default() {
                WebhookPart::Never => Ok(Some(PolicyDuty::Alone)),
                WebhookPart::Rest if registers => Ok(Some(PolicyDuty::BesideWebhook)),
                WebhookPart::Rest => bail!(
                    "--enforcement=policies registers the webhook for the kinds that policies cannot express: give --service \
                     and let it register, or give --webhook=never"
                ),
            };
        }
        if self.webhook.is_some() || self.policy_name_prefix.is_some() {
            bail!("--webhook and --policy-name-prefix need --enforcement=policies");
        }
        match (self.remove_policies, self.enforcement) {
            (false, _) => Ok(None),
            (true, Enforcement::Off) => Ok(Some(PolicyDuty::Remove)),
            (true, _) if registers => Ok(Some(PolicyDuty::RemoveOnceRegistered)),
            (true, _) => bail!(
                "--remove-policies waits until the webhook is registered: give --service and let it register, or delete the \
                 policies with `kube-unions unregister`"
            ),
        }
    }
}
