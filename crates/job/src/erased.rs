//! The same contract without types, so that jobs can be in one list.

use crate::{
    Ability, Error, Failed, Guarded, Interface, Job, Metrics, Pulse, Section, Service, User,
    file::Reader,
};
use config::Problem;
use serde_json::{Value, json};
use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

/// A future of any job.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A [`Job`].
pub(crate) trait AnyJob: Send + Sync {
    fn name(&self) -> &'static str;
    fn sections(&self) -> Vec<Section>;
    fn renamed(&self) -> crate::Renamed;
    fn ability(&self, interfaces: &[Interface]) -> Ability;
    fn read(&self, file: &mut Reader<'_, '_>, node: &crate::Node) -> Option<Box<dyn AnyConfig>>;
}

/// The sections of a job.
pub(crate) trait AnyConfig: Send + Sync {
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> crate::Capabilities;
    fn problems(&self) -> Vec<Problem>;
    fn warnings(&self) -> Vec<Problem>;
    fn interfaces(&self) -> Vec<String>;
    fn privileged(&self, becomes: Option<&User>);
    fn open(self: Box<Self>, drained: bool) -> Boxed<'static, Result<Box<dyn AnyOpened>, Error>>;
    fn config(&self) -> &dyn Any;
    fn into_config(self: Box<Self>) -> Box<dyn Any + Send>;
}

/// A job that is open.
pub(crate) trait AnyOpened: Send {
    fn start(self: Box<Self>) -> Boxed<'static, Result<Box<dyn AnyService>, Error>>;
    fn close(self: Box<Self>) -> Boxed<'static, ()>;
}

/// A [`Service`].
pub(crate) trait AnyService: Send + Sync {
    fn name(&self) -> &'static str;
    fn failed(&self) -> Option<Failed>;
    fn guarded(&self) -> &dyn Any;
    fn pulse(&self) -> &Pulse;
    fn problems(&self) -> Vec<String>;
    fn status(&self) -> Value;
    fn refresh(&self) -> Boxed<'_, ()>;
    fn render(&self) -> String;
    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result;
    fn control(&self, request: Value) -> serde_json::Result<Boxed<'_, Result<Value, Error>>>;
    fn prepare(
        &self,
        config: Box<dyn AnyConfig>,
    ) -> Boxed<'_, Result<Box<dyn AnyChange + '_>, Error>>;
    fn drain(&self) -> Boxed<'_, ()>;
    fn undrain(&self) -> Boxed<'_, ()>;
    fn stop(&self) -> Boxed<'_, ()>;
    fn stop_when_failed(&self) -> Boxed<'_, ()>;
}

/// A configuration that is prepared.
pub(crate) trait AnyChange: Send {
    fn commit(&mut self) -> Boxed<'_, Result<(), Error>>;
    fn finish<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a;
    fn roll_back<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a;
}

/// A job in the list.
pub(crate) struct JobOf<J>(pub(crate) Arc<J>);

/// Its sections.
struct ConfigOf<J: Job> {
    job: Arc<J>,
    config: J::Config,
}

/// What it has opened.
struct OpenedOf<J: Job> {
    job: Arc<J>,
    opened: J::Opened,
}

/// What its service has prepared.
struct ChangeOf<'s, S: Service> {
    guarded: &'s Guarded<S>,
    prepared: S::Prepared,
}

impl<J: Job> AnyJob for JobOf<J> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn sections(&self) -> Vec<Section> {
        self.0.sections()
    }

    fn renamed(&self) -> crate::Renamed {
        self.0.renamed()
    }

    fn ability(&self, interfaces: &[Interface]) -> Ability {
        self.0.ability(interfaces)
    }

    fn read(&self, file: &mut Reader<'_, '_>, node: &crate::Node) -> Option<Box<dyn AnyConfig>> {
        let name = self.name();
        let config = panics::catch(name, || self.0.read(file, node)).unwrap_or_else(|| {
            file.error_at_end("", Failed::of(name).to_string());
            None
        })?;
        Some(Box::new(ConfigOf { job: self.0.clone(), config }))
    }
}

impl<J: Job> AnyConfig for ConfigOf<J> {
    fn name(&self) -> &'static str {
        self.job.name()
    }

    fn capabilities(&self) -> crate::Capabilities {
        self.job.capabilities()
    }

    fn problems(&self) -> Vec<Problem> {
        let name = self.name();
        let problems = panics::catch(name, || self.job.problems(&self.config));
        problems.unwrap_or_else(|| vec![Problem::new(name, Failed::of(name).to_string())])
    }

    fn warnings(&self) -> Vec<Problem> {
        panics::catch(self.name(), || self.job.warnings(&self.config)).unwrap_or_default()
    }

    fn interfaces(&self) -> Vec<String> {
        self.job.interfaces(&self.config)
    }

    fn privileged(&self, becomes: Option<&User>) {
        self.job.privileged(&self.config, becomes);
    }

    fn open(self: Box<Self>, drained: bool) -> Boxed<'static, Result<Box<dyn AnyOpened>, Error>> {
        let Self { job, config } = *self;
        Box::pin(async move {
            let name = job.name();
            let opened = panics::caught(name, job.open(config, drained)).await;
            let opened = opened.unwrap_or_else(|| Err(Failed::of(name).into()))?;
            Ok(Box::new(OpenedOf { job, opened }) as Box<dyn AnyOpened>)
        })
    }

    fn config(&self) -> &dyn Any {
        &self.config
    }

    fn into_config(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new(self.config)
    }
}

impl<J: Job> AnyOpened for OpenedOf<J> {
    fn start(self: Box<Self>) -> Boxed<'static, Result<Box<dyn AnyService>, Error>> {
        let Self { job, opened } = *self;
        Box::pin(async move {
            let name = job.name();
            let service = panics::caught(name, job.start(opened)).await;
            let service = service.unwrap_or_else(|| Err(Failed::of(name).into()))?;
            Ok(Box::new(Guarded::new(name, service)) as Box<dyn AnyService>)
        })
    }

    fn close(self: Box<Self>) -> Boxed<'static, ()> {
        let Self { job, opened } = *self;
        Box::pin(async move {
            // What panics here is in the log.
            let _ = panics::caught(job.name(), job.close(opened)).await;
        })
    }
}

impl<S: Service> AnyService for Guarded<S> {
    fn name(&self) -> &'static str {
        Guarded::name(self)
    }

    fn failed(&self) -> Option<Failed> {
        Guarded::failed(self)
    }

    fn guarded(&self) -> &dyn Any {
        self
    }

    fn pulse(&self) -> &Pulse {
        Guarded::pulse(self)
    }

    fn problems(&self) -> Vec<String> {
        self.call(S::problems).unwrap_or_else(|failed| vec![failed.to_string()])
    }

    fn status(&self) -> Value {
        self.call(S::status).unwrap_or_else(|_| json!({ "failed": true }))
    }

    fn refresh(&self) -> Boxed<'_, ()> {
        // Of a job that has failed nothing is shown but that.
        Box::pin(async { self.ask(S::refresh).await.unwrap_or_default() })
    }

    fn render(&self) -> String {
        self.call(S::render).unwrap_or_else(|failed| format!("{failed}\n"))
    }

    fn collect(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        self.call(|service| service.collect(metrics)).unwrap_or(Ok(()))
    }

    fn control(&self, request: Value) -> serde_json::Result<Boxed<'_, Result<Value, Error>>> {
        let request = serde_json::from_value(request)?;
        Ok(Box::pin(async { self.ask(|service| service.control(request)).await? }))
    }

    fn prepare(
        &self,
        config: Box<dyn AnyConfig>,
    ) -> Boxed<'_, Result<Box<dyn AnyChange + '_>, Error>> {
        Box::pin(async move {
            let Ok(config) = config.into_config().downcast::<S::Config>() else {
                return Err(format!("these are not the sections of {}", self.name()).into());
            };
            let prepared = self.ask(|service| service.prepare(*config)).await??;
            Ok(Box::new(ChangeOf { guarded: self, prepared }) as Box<dyn AnyChange + '_>)
        })
    }

    fn drain(&self) -> Boxed<'_, ()> {
        Box::pin(async { self.ask(S::drain).await.unwrap_or_default() })
    }

    fn undrain(&self) -> Boxed<'_, ()> {
        Box::pin(async { self.ask(S::undrain).await.unwrap_or_default() })
    }

    fn stop(&self) -> Boxed<'_, ()> {
        Box::pin(Guarded::stop(self))
    }

    fn stop_when_failed(&self) -> Boxed<'_, ()> {
        Box::pin(async {
            panics::failed(self.name()).await;
            Guarded::stop(self).await;
        })
    }
}

impl<S: Service> AnyChange for ChangeOf<'_, S> {
    fn commit(&mut self) -> Boxed<'_, Result<(), Error>> {
        Box::pin(async { self.guarded.ask(|service| service.commit(&mut self.prepared)).await? })
    }

    fn finish<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a,
    {
        let Self { guarded, prepared } = *self;
        Box::pin(async move {
            guarded.ask(|service| service.finish(prepared)).await.unwrap_or_default();
        })
    }

    fn roll_back<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a,
    {
        let Self { guarded, prepared } = *self;
        Box::pin(async move {
            guarded.ask(|service| service.roll_back(prepared)).await.unwrap_or_default();
        })
    }
}
